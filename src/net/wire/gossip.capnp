# The header of every frame on a connection between two peers. Cap'n Proto as a format only: one segment, no pointers, so a
# header always has the same size. On the wire a frame is: 4 bytes of magic, 4 bytes with the header's length in words, this
# message's only segment, and then `payloadBytes` raw bytes (little-endian float32 values, or the text of an abort or a note).
@0xd1f7c0a4b96e3825;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gossamer::net::wire");

struct FrameHeader {
  round @0 :UInt64;
  offset @1 :UInt64;        # values before this chunk in its message
  total @2 :UInt64;         # values of the whole message
  checksum @3 :UInt64;      # XXH3-64 of the other fields, xor XXH3-64 of the payload
  run @4 :UInt32;           # the run id, shortened
  from @5 :UInt32;
  to @6 :UInt32;
  payloadBytes @7 :UInt32;
  channel @8 :UInt16;
  kind @9 :Kind;
  dtype @10 :DType;
  codec @11 :Codec;

  enum Kind {
    none @0;
    data @1;
    heartbeat @2;           # nothing else was said for a while
    goodbye @3;             # the sender says nothing more, and will close
    abort @4;               # the run ends: `round` holds the kind of error, the payload says why
    control @5;                # what is to be made of round `round` on `channel`: `offset` holds it (gossip/links/link.hpp)
    statement @6;           # before the first chunk: what the payload says, for those above
    running @7;             # the network has begun: whoever hears it is a latecomer, or knows
    ack @8;            # `round` holds how many frames have come, all but heartbeats, aborts and these
  }
  enum DType {
    none @0;
    float32 @1;
  }
  enum Codec {
    raw @0;
  }
}
