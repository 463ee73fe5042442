# The header of every frame on a connection between two peers. On the wire a frame is: 4 bytes of
# magic, 4 bytes with the length of the header in words, 8 bytes of checksum, this message's only
# segment, and then `payloadBytes` raw bytes. Cap'n Proto serves as a format only: a header is one
# segment without pointers and always has the same size. Each kind of frame has a group of its own
# in the union, so every field has one meaning. docs/WIRE.md describes the kinds.
@0xd1f7c0a4b96e3825;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gossamer::net::wire");

struct FrameHeader {
  run @0 :UInt32;                   # hash of the run id
  from @1 :UInt32;                  # the peer that sends
  to @2 :UInt32;                    # the peer that receives
  payloadBytes @3 :UInt32;

  union {
    unknown @4 :Void;
    data :group {                   # a chunk of a message; payload: little-endian float32 values
      round @5 :UInt64;
      offset @6 :UInt64;            # values before this chunk in its message
      total @7 :UInt64;             # values of the whole message
      channel @8 :UInt16;
    }
    heartbeat @9 :Void;             # nothing else was sent for a while
    goodbye @10 :Void;              # no more frames follow; the sender closes when all are acked
    abort :group {                  # the run ends; the payload is the reason as text
      errorKind @11 :UInt16;        # gossamer::ErrorKind
    }
    control :group {                # a control message of the protocol (gossip/link.hpp)
      message @12 :UInt16;          # gossip::ControlMessage
      channel @13 :UInt16;
      round @14 :UInt64;
      argument @15 :UInt64;         # of propose_round: the donor's local steps; of catch_up: the
                                    # first round that is not left out
      linkVersion @16 :UInt32;      # of link_lost and link_restored, as the next three
      linkEnd @17 :UInt16;
      linkNeighbour @18 :UInt16;
      reachabilityOnly @19 :Bool;
      chain @24 :UInt8;             # of waiting
    }
    contribution @20 :Void;         # to the all-gather at the start; the payload is its text
    running @21 :Void;              # the network of the sender has begun its rounds
    ack :group {                    # an acknowledgement
      received @22 :UInt64;         # counted frames that the sender of this frame has received
      sent @23 :UInt64;             # counted frames that it has put in its send queue
      released @25 :UInt64;         # of those, first ones whose values it no longer reads
    }
    offer :group {                  # the sender's memory, for a process of the same machine
      process @26 :UInt32;          # gossamer::SharedMemoryName
      descriptor @27 :UInt32;
      bytes @28 :UInt64;
      token @29 :UInt64;
    }
    mapped @30 :Void;               # the sender can read the memory that it was offered
    lent :group {                   # a chunk in the sender's memory; payload: where, as 8 bytes
      round @31 :UInt64;            # and how many values, as 8 bytes; the rest as in data
      offset @32 :UInt64;
      total @33 :UInt64;
      channel @34 :UInt16;
    }
    figures :group {                # figures of nodes, for pages of the run; payload: the entries
      asker @35 :UInt32;            # a node of a process with a page
      wish @36 :UInt64;             # number of the asker's wish for figures
    }
  }
}
