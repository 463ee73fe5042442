// gossamer completions SHELL, gossamer man: the command line as shells and man read it, generated
// from the declarations of the commands and of the configuration's keys.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <string_view>

#include "cli/catalog.hpp"
#include "cli/commands.hpp"
#include "peer/version.hpp"

namespace gossamer::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> all;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : names_of(*option)) all.push_back(name);
  return all;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// "section.key=" of every key of a configuration, those of the kinds included.
std::set<std::string> settings() {
  std::set<std::string> all;
  for (const CatalogGroup& group : catalog())
    for (const CatalogEntry& entry : group.entries)
      for (const ParameterSpec& key : entry.parameters)
        all.insert(
            fmt::format("{}.{}=", group.name == "section" ? entry.name : group.name, key.name));
  for (const peer::SectionSpec& section : peer::section_specs())
    if (!section.kind_key.empty())
      all.insert(fmt::format("{}.{}=", section.name, section.kind_key));
  return all;
}

/// What may stand in the place of a word that is no option: the shells, or the topologies. None:
/// the name of a file.
std::vector<std::string> words_of(const CLI::App& command) {
  if (command.get_name() == "completions") return {"bash", "fish", "zsh"};
  std::vector<std::string> names;
  for (const CatalogGroup& group : catalog())
    if (group.name == "topology" && group.name == command.get_name())
      for (const CatalogEntry& entry : group.entries) names.push_back(entry.name);
  return names;
}

/// Whether --set of the command takes a section's name before the key.
bool sets_sections(const CLI::App& command) { return words_of(command).empty(); }

// ---- shells

/// One script for bash and zsh: zsh reads it through bashcompinit.
std::string bash_script(const CLI::App& app) {
  std::string commands, cases;
  for (const CLI::App* command : commands_of(app)) {
    commands += command->get_name() + " ";
    cases += fmt::format("    {}) options='{}' words='{}' sections={} ;;\n", command->get_name(),
                         fmt::join(option_names(*command), " "), fmt::join(words_of(*command), " "),
                         sets_sections(*command) ? 1 : 0);
  }
  commands.pop_back();
  return fmt::format(R"(# Completion of gossamer {} in bash, printed by `gossamer completions bash`.
_gossamer() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local options words sections=0 settings='{}'
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} {}' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}    *) return ;;
  esac
  if [ "$previous" = --set ]; then
    [ "$sections" -eq 0 ] || COMPREPLY=($(compgen -W "$settings" -- "$current"))
    compopt -o nospace 2>/dev/null
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [ -n "$words" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}}
complete -o bashdefault -o default -F _gossamer gossamer
)",
                     peer::kVersion, fmt::join(settings(), " "), commands,
                     fmt::join(option_names(app), " "), cases);
}

std::string zsh_script(const CLI::App& app) {
  std::string script = bash_script(app);
  script.insert(0, "#compdef gossamer\nautoload -U +X bashcompinit && bashcompinit\n");
  return script;
}

/// In single quotes of fish.
std::string fish_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish_script(const CLI::App& app) {
  std::string script =
      fmt::format("# Completion of gossamer {} in fish, printed by `gossamer completions fish`.\n",
                  peer::kVersion);
  for (const CLI::App* command : commands_of(app)) {
    script += fmt::format("complete -c gossamer -n __fish_use_subcommand -f -a {} -d {}\n",
                          command->get_name(), fish_quoted(command->get_description()));
    const std::string when = fmt::format("complete -c gossamer -n '__fish_seen_subcommand_from {}'",
                                         command->get_name());
    if (const auto words = words_of(*command); !words.empty())
      script += fmt::format("{} -f -a '{}'\n", when, fmt::join(words, " "));
    for (const CLI::Option* option : command->get_options()) {
      if (names_of(*option).empty()) continue;
      script += when;
      for (const std::string& name : option->get_snames()) script += " -s " + name;
      for (const std::string& name : option->get_lnames()) script += " -l " + name;
      if (takes_value(*option)) script += " -r";
      if (option->check_lname("set") && sets_sections(*command))
        script += fmt::format(" -f -a '{}'", fmt::join(settings(), " "));
      script += fmt::format(" -d {}\n", fish_quoted(option->get_description()));
    }
  }
  return script;
}

// ---- man

/// Text that roff prints as it is.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') escaped += "\\e";
    else if (c == '-') escaped += "\\-";
    else if (c == '\'') escaped += "\\(aq";
    else if (c == '`') escaped += "\\(ga";
    else if (c == '^') escaped += "\\(ha";
    else if (c == '~') escaped += "\\(ti";
    else if (c == '.' && (escaped.empty() || escaped.back() == '\n')) escaped += "\\&.";
    else escaped += c;
  }
  return escaped;
}

/// A description, as a sentence.
std::string sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return roff(text) + ".";
}

std::string usage(const CLI::App& command) {
  std::string text = fmt::format(".B gossamer {}\n", roff(command.get_name()));
  bool has_options = false;
  for (const CLI::Option* option : command.get_options())
    has_options = has_options || (!names_of(*option).empty() && !option->check_lname("help"));
  if (has_options) text += "[\\fIoptions\\fR]\n";
  for (const CLI::Option* option : command.get_options()) {
    if (!names_of(*option).empty()) continue;
    const std::string name = fmt::format("\\fI{}\\fR{}", roff(option->get_name()),
                                         option->get_items_expected_max() > 1 ? " \\&..." : "");
    text += option->get_required() ? name + "\n" : fmt::format("[{}]\n", name);
  }
  return text;
}

std::string command_page(const CLI::App& command) {
  std::string text = fmt::format(".SS {}\n{}.PP\n{}\n", roff(command.get_name()), usage(command),
                                 sentence(command.get_description()));
  for (const CLI::Option* option : command.get_options()) {
    if (option->check_lname("help")) continue;
    const auto names = names_of(*option);
    std::string tag =
        names.empty() ? fmt::format("\\fI{}\\fR", roff(option->get_name()))
                      : fmt::format("\\fB{}\\fR", roff(fmt::format("{}", fmt::join(names, ", "))));
    if (!names.empty() && takes_value(*option)) tag += " \\fIvalue\\fR";
    std::string help = roff(option->get_description());
    if (takes_value(*option) && !option->get_default_str().empty())
      help += fmt::format(" (default: {})", roff(option->get_default_str()));
    text += fmt::format(".TP\n{}\n{}\n", tag, help);
  }
  return text;
}

std::string configuration_page() {
  std::string text =
      ".SH CONFIGURATION\nA configuration is a TOML file; every key has a default. "
      "\\fBgossamer list \\-v\\fR prints the kinds, their own keys and their sources.\n";
  for (const CatalogGroup& group : catalog()) {
    if (group.name != "section") continue;
    for (const CatalogEntry& section : group.entries) {
      text += fmt::format(".SS [{}]\n{}\n", roff(section.name), sentence(section.summary));
      for (const ParameterSpec& key : section.parameters) {
        const std::string value = to_string(key.default_value);
        text += fmt::format(".TP\n\\fB{}\\fR = {}\n{}\n", roff(key.name),
                            value.empty() ? "\"\"" : roff(value), roff(key.notes.help));
        if (!key.notes.choices.empty())
          text +=
              fmt::format("({})\n", roff(fmt::format("{}", fmt::join(key.notes.choices, ", "))));
      }
    }
  }
  return text;
}

std::string man_page(const CLI::App& app) {
  std::string text = fmt::format(
      ".\\\" Printed by `gossamer man`.\n.TH GOSSAMER 1 \"\" \"gossamer {}\" \"User Commands\"\n"
      ".SH NAME\ngossamer \\- train one model on many machines by gossip, without a server\n"
      ".SH SYNOPSIS\n.B gossamer\n\\fIcommand\\fR [\\fIoptions\\fR]\n"
      ".SH DESCRIPTION\nEvery machine runs the same program, a peer. It keeps the whole model and "
      "its own data, trains on them, and averages parameters with its neighbours on a graph.\n"
      ".SH COMMANDS\n",
      peer::kVersion);
  for (const CLI::App* command : commands_of(app)) text += command_page(*command);
  text += configuration_page();
  text += fmt::format(".SH EXIT STATUS\n{}\n", roff(app.get_footer()));
  text += ".SH SEE ALSO\nREADME.md and the pages in docs/ of the source.\n";
  return text;
}

std::string script_for(const std::string& shell, const CLI::App& app) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return zsh_script(app);
  return fish_script(app);
}

}  // namespace

void add_completions(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completions = app.add_subcommand(
      "completions", "print a script that lets a shell complete commands, options and keys");
  completions->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "fish", "zsh"}));
  completions->callback([shell, &app, &exit_code] {
    fmt::print("{}", script_for(*shell, app));
    exit_code = 0;
  });
}

void add_man(CLI::App& app, int& exit_code) {
  CLI::App* man = app.add_subcommand("man", "print this program's page for man");
  man->callback([&app, &exit_code] {
    fmt::print("{}", man_page(app));
    exit_code = 0;
  });
}

}  // namespace gossamer::cli
