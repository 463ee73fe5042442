#include "cli/catalog.hpp"

#include "gossip/algorithm.hpp"
#include "gossip/attack.hpp"
#include "gossip/codec.hpp"
#include "gossip/rule.hpp"
#include "peer/config/config.hpp"
#include "topology/kind.hpp"
#include "train/dataset.hpp"
#include "train/graph/operators.hpp"
#include "train/model.hpp"
#include "train/optimizer.hpp"

namespace gossamer::cli {
namespace {

template <class Kind>
CatalogGroup group(const std::string& name, const std::vector<Kind>& kinds) {
  CatalogGroup result{name, {}};
  for (const Kind& kind : kinds)
    result.entries.push_back({kind.name, kind.summary, kind.source, kind.parameters});
  return result;
}

}  // namespace

std::vector<CatalogGroup> catalog() {
  std::vector<CatalogGroup> all{group("topology", topology::kinds::catalog()),
                                group("algorithm", gossip::algorithms::catalog()),
                                group("codec", gossip::codecs::catalog()),
                                group("mixing", gossip::rules::catalog()),
                                group("attack", gossip::attacks::catalog()),
                                group("model", train::models::catalog()),
                                group("data", train::datasets::catalog()),
                                group("optimizer", train::optimizer_kinds())};
  CatalogGroup sections{"section", {}};
  for (const peer::SectionSpec& section : peer::section_specs())
    sections.entries.push_back({section.name, section.summary, "", section.keys});
  all.push_back(std::move(sections));
  return all;
}

CatalogGroup operators() { return group("operator", train::operator_kinds()); }

}  // namespace gossamer::cli
