// The page of a run: a view of the run, served to browsers, to Prometheus and to health checks
// (docs/WATCH.md).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

/// A view, which is served as long as the page exists.
class RunPage {
 public:
  /// `option`: the one that has the address, for errors. Errors: (invalid) the text is no address;
  /// as of WebServer::start.
  static Result<std::unique_ptr<RunPage>> serve(const std::string& option,
                                                const std::string& address,
                                                RunViewOptions view = {});

  RunView& view() { return view_; }
  std::string url() const { return server_->url(); }
  /// Only this machine reaches it.
  bool is_local() const { return server_->is_local(); }

 private:
  explicit RunPage(RunViewOptions view) : view_(std::move(view)) {}
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
