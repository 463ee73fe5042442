"""Rules for the source tree: which folders may include which, and limits of size.

Each module of src/ includes only the modules that are listed for it. Modules whose results must not
depend on the machine use no clock, thread, lock or unordered container.
"""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from cpp_outline import Class, Function, outline

ROOT = Path(__file__).resolve().parents[3]
SRC = ROOT / "src"

MAY_INCLUDE = {
    "base": set(),
    "topology": {"base"},
    "theory": {"base", "topology"},
    "gpu": {"base"},
    "train": {"base", "gpu"},
    "gossip": {"base", "topology", "gpu"},
    "net": {"base", "gossip"},
    "peer": {"base", "topology", "theory", "gpu", "train", "gossip", "net"},
    "cli": {"base", "topology", "theory", "gpu", "train", "gossip", "net", "peer"},
    "simulator": {"base", "topology", "gpu", "gossip", "net", "peer", "cli"},
}
# The folders of a module in their order: each includes only folders before it. "" are the files of
# the module's own folder.
ORDER = {
    "peer": (
        "",
        "storage",
        "config",
        "attack",
        "privacy",
        "setup",
        "launch",
        "log",
        "checkpoint",
        "prediction",
        "watch",
        "runtime",
        "replica",
        "doctor",
        "leak",
        "probe",
        "benchmarks",
    ),
    "gossip": (
        "",
        "codecs",
        "rules",
        "attacks",
        "links",
        "process",
        "messaging",
        "mixing",
        "exchange",
        "node",
        "algorithms",
        "membership",
        "engine",
    ),
    "net": ("io", "wire", "session", "tls", "startup", "relay", "discovery", "", "run"),
}

# Code that runs in virtual time or whose results must be the same on every machine.
DETERMINISTIC = (
    "topology",
    "theory",
    "gossip",
    "train",
    "simulator/scenario",
    "simulator/world",
    "simulator/oracle",
    "simulator/session",
)
NONDETERMINISTIC = re.compile(
    r"std::(jthread|thread|mutex|shared_mutex|recursive_mutex|condition_variable|atomic|future"
    r"|async|lock_guard|unique_lock|scoped_lock|unordered_\w+"
    r"|chrono::(steady|system|high_resolution)_clock|random_device|this_thread|rand\b)"
    r"|#include\s*<(thread|mutex|shared_mutex|condition_variable|atomic|future"
    r"|unordered_map|unordered_set|random|ctime)>"
    r"|\b(pthread_\w+|clock_gettime|gettimeofday)\b|\b(asio::|kj::|capnp::)"
)
SOCKETS = re.compile(r"#include\s*<(asio|capnp|kj|sys/socket)\b[^>]*>")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

MOST_LINES_A_FILE = 400
MOST_COLUMNS = 100
MOST_MEMBERS, MOST_METHODS, MOST_LINES_A_FUNCTION = 18, 25, 60
PROGRAMS = (".cpp", ".hpp", ".cu", ".inl", ".h", ".py")
FORMATTED = (".cpp", ".hpp", ".cu", ".inl", ".h", ".capnp", ".py", ".sh", ".toml")
MOST_FILES_A_FOLDER = 30


def sources(folder: str) -> list[Path]:
    return sorted(
        path
        for path in (SRC / folder).rglob("*")
        if path.suffix in (".hpp", ".cpp", ".cu", ".cuh", ".h")
    )


def code(path: Path) -> str:
    """The text of a C++ file without its comments."""
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def tracked(*folders: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *folders], cwd=ROOT, capture_output=True, text=True
    )
    assert listed.returncode == 0, listed.stderr
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def matches(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(SRC)}: {match[0]}"
        for path in paths
        for match in pattern.finditer(code(path))
    ]


def test_every_folder_of_src_is_a_known_module() -> None:
    modules = {path.name for path in SRC.iterdir() if path.is_dir()}
    assert modules <= MAY_INCLUDE.keys(), "list the new module in CMakeLists.txt and in MAY_INCLUDE"


@pytest.mark.parametrize("module", MAY_INCLUDE)
def test_a_module_includes_only_the_modules_listed_for_it(module: str) -> None:
    faults = []
    for path in sources(module):
        for included in INCLUDE.findall(code(path)):
            if included.endswith(".capnp.h") and module == "net":
                continue  # generated
            target = included.split("/")[0]
            if "/" not in included or included.startswith(".."):
                faults.append(f"{path.relative_to(SRC)}: '{included}' is not rooted at src/")
            elif target in MAY_INCLUDE and target != module and target not in MAY_INCLUDE[module]:
                faults.append(f"{path.relative_to(SRC)} includes {included}: {module} may not")
    assert not faults, "\n".join(faults)


def folder_of(path: str, module: str) -> str:
    """The folder of `module` in which a file of src/ lies; "" for the module's own folder."""
    return path.removeprefix(f"{module}/").rpartition("/")[0].partition("/")[0]


@pytest.mark.parametrize("module", ORDER)
def test_folders_of_a_module_include_only_folders_before_them(module: str) -> None:
    order = ORDER[module]
    faults = []
    for path in sources(module):
        name = str(path.relative_to(SRC))
        folder = folder_of(name, module)
        assert folder in order, f"give {folder} a place in the order of {module}"
        for included in INCLUDE.findall(code(path)):
            if not included.startswith(f"{module}/"):
                continue
            if folder_of(included, module) not in order[: order.index(folder) + 1]:
                faults.append(f"{name} includes {included}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("folder", DETERMINISTIC)
def test_deterministic_code_uses_no_clock_thread_lock_or_unordered_container(folder: str) -> None:
    faults = matches(NONDETERMINISTIC, sources(folder))
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "module", [module for module in MAY_INCLUDE if module not in ("net", "peer")]
)
def test_sockets_and_wire_format_stay_in_net(module: str) -> None:
    faults = matches(SOCKETS, sources(module))
    assert not faults, "\n".join(faults)


def test_cryptography_stays_in_one_folder() -> None:
    others = [path for path in sources(".") if path.parent != SRC / "net" / "tls"]
    faults = matches(re.compile(r"#include\s*<openssl/[^>]*>"), others)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("module", ["gossip", "net"])
def test_protocol_classes_have_no_friends(module: str) -> None:
    found = matches(re.compile(r"\bfriend\b[^;]*;"), sources(module))
    assert not found, "\n".join(found)


def test_no_file_is_too_long() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path in tracked("src", "tests", "experiments", "python")
        if path.suffix in PROGRAMS
        and (lines := len(path.read_text(encoding="utf-8").splitlines())) > MOST_LINES_A_FILE
    ]
    assert not found, "\n".join(found)


def test_no_class_and_no_function_is_too_large() -> None:
    classes: list[Class] = []
    functions: list[Function] = []
    for path in [*sources("."), *sorted((ROOT / "python/src").iterdir())]:
        in_file = outline(path)
        classes += in_file[0]
        functions += in_file[1]
    assert len(classes) > 500 and len(functions) > 2500  # they are found
    large = [
        f"{each.path}:{each.line}: {each.name}: {len(each.members)} members, "
        f"{len(each.methods)} methods"
        for each in classes
        if len(each.members) > MOST_MEMBERS or len(each.methods) > MOST_METHODS
    ]
    large += [
        f"{each.path}:{each.line}: {each.lines} lines"
        for each in functions
        if each.lines > MOST_LINES_A_FUNCTION
    ]
    assert large == [], "\n".join(large)


def test_the_outline_of_a_source_counts_what_a_reader_counts(tmp_path: Path) -> None:
    path = tmp_path / "example.hpp"
    path.write_text(
        """
namespace a {
// int comment_ = 0;
template <class T, class... More>
class Outer final : public Base<T>, private Other {
 public:
  explicit Outer(int x, std::function<void(int)> f = [](int) {}) : x_{x}, f_(std::move(f)) {}
  Outer(const Outer&) = delete;
  ~Outer() override;
  bool operator==(const Outer&) const = default;
  auto begin() const { return values_.begin(); }
  friend struct Friend;
  using Values = std::vector<int>;
  enum class Kind { one, two };
  struct Inner {
    int a = 0, b = 0;
    std::map<int, std::pair<int, int>> c = {{1, {2, 3}}};
  };
  virtual int size() const = 0;

 private:
  static constexpr int kMost = 3;
  std::function<void(int here, int there)> on_event_ = [](int, int) {
    return;
  };
  const char* text_ = "a { string; (with) things";
  int x_;
};
int free(int a) {
  return a;
}
}  // namespace a
"""
    )
    classes, functions = outline(path)
    outer, inner = classes
    assert (outer.name, len(outer.methods), len(outer.members)) == ("Outer", 4, 4)
    assert (inner.name, len(inner.methods), len(inner.members)) == ("Inner", 0, 3)
    assert [each.lines for each in functions] == [1, 1, 3]


def test_every_fuzz_target_is_run() -> None:
    sources = (ROOT / "tests/fuzz").glob("*_targets.cpp")
    targets = {
        name
        for path in sources
        for name in re.findall(r'\{"(\w+)", run_\w+, \w+\}', path.read_text(encoding="utf-8"))
    }
    listed = re.search(
        r"set\(fuzz_targets ([^)]*)\)", (ROOT / "tests/CMakeLists.txt").read_text(encoding="utf-8")
    )
    assert len(targets) >= 16
    assert listed is not None and set(listed[1].split()) == targets


def test_no_folder_holds_too_many_files() -> None:
    counts = Counter(
        str(path.parent.relative_to(ROOT)) for path in tracked("src", "tests", "python")
    )
    found = [
        f"{folder}: {count} files"
        for folder, count in counts.items()
        if count > MOST_FILES_A_FOLDER
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", ["src", "tests", "experiments", "python"])
def test_no_line_is_too_long(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"
        for path in tracked(folder)
        if path.suffix in FORMATTED
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > MOST_COLUMNS
    ]
    assert not found, "\n".join(found)
