// The page of a run: a view of the run, served to browsers, to Prometheus and to health checks
// (docs/WATCH.md).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "peer/log/recorder.hpp"
#include "peer/setup/setup.hpp"
#include "peer/watch/link_traffic.hpp"
#include "peer/watch/run_view.hpp"
#include "peer/watch/web_server.hpp"

namespace gossamer::peer {

/// The answer to a request: the page and its parts, /state, /rounds/R, /metrics, /health.
WebAnswer answer_of(const RunView& view, std::string_view path);

/// A view, and the server that shows it.
class RunPage {
 public:
  explicit RunPage(RunViewOptions view = {}) : view_(std::move(view)) {}

  /// Serves the view as long as the page exists: once, after the view shows what clients are to see
  /// first. `option`: the one that has the address, for errors. Errors: (invalid) the text is no
  /// address; as of WebServer::start.
  Status serve(const std::string& option, const std::string& address);

  RunView& view() { return view_; }
  /// Of a page that is served, here and below.
  std::string url() const { return server_->url(); }
  /// Only this machine reaches it.
  bool is_local() const { return server_->is_local(); }

 private:
  RunView view_;
  std::unique_ptr<WebServer> server_;  ///< destroyed first: it reads the view
};

/// The curve that theory predicts for the run; null if it has none, or too many peers.
Json predicted_curve(const Setup& setup);

/// The page that net.http asks for, of a process that hosts `hosted`: shows what `recorder` writes
/// from now on, and `traffic`, which outlives the recorder's use. `hears_others`: RunViewOptions.
/// Null if net.http is empty. `message` receives a line with the page's address. The recorder must
/// not write after the page is destroyed. Errors as of RunPage::serve; the recorder then discards
/// its files.
Result<std::unique_ptr<RunPage>> open_page(const Setup& setup, Recorder& recorder,
                                           const std::vector<int>& hosted, bool hears_others,
                                           const LinkTraffic& traffic,
                                           const std::function<void(const std::string&)>& message);

}  // namespace gossamer::peer
