# The Debian packages each job needs, and a function that installs what is missing. Sourced, not run.
# shellcheck shell=bash disable=SC2034

build_packages=(g++ cmake ninja-build libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libpcre2-dev
                libutf8proc-dev liburing-dev libxxhash-dev libcpp-httplib-dev libtomlplusplus-dev pkg-config)
# python3 compares chat templates with Jinja2 and arrays with numpy; the product itself needs none of it.
test_packages=(libgtest-dev python3 python3-jinja2 python3-numpy)
train_packages=(libtorch-dev libgloo-dev)
bench_packages=(libbenchmark-dev)
format_packages=(clang-format)

# All messages go to stderr: stdout is for answers.
say() { printf 'forebay: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Prints those of the named packages that are not installed.
missing_packages() {
  local installed package
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null) || true  # it fails when it has never heard of one
  for package in "$@"; do
    [[ $'\n'$installed$'\n' == *$'\n'"installed $package"$'\n'* ]] || printf '%s\n' "$package"
  done
}

# Runs a command that may need root, with its output kept back unless it fails.
as_root_quietly() {
  local log status=0
  local -a prefix=(env DEBIAN_FRONTEND=noninteractive)
  ((EUID == 0)) || prefix=(sudo "${prefix[@]}")
  log=$(mktemp)
  "${prefix[@]}" "$@" </dev/null >"$log" 2>&1 || status=$?
  ((status == 0)) || cat "$log" >&2
  rm -f "$log"
  return "$status"
}

# ensure_packages "for what" package...
ensure_packages() {
  local purpose=$1
  shift
  # Without dpkg this is another system: its user has brought the libraries, or cmake names what it lacks.
  command -v dpkg-query >/dev/null || return 0
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} > 0)) || return 0
  local by_hand="apt-get install ${missing[*]}"
  ((EUID == 0)) || command -v sudo >/dev/null ||
    die "packages are missing and there is no sudo; as root: $by_hand"
  say "installing packages $purpose: ${missing[*]}"
  local -a apt=(apt-get -q -y -o DPkg::Lock::Timeout=300)
  local -a install=("${apt[@]}" install --no-install-recommends "${missing[@]}")
  # The package lists are fetched only when they do not know a package, or know an outdated version of it.
  if apt-cache show --no-all-versions "${missing[@]}" >/dev/null 2>&1 && as_root_quietly "${install[@]}" 2>/dev/null
  then
    return 0
  fi
  as_root_quietly "${apt[@]}" update || die "apt-get update failed (shown above); needed: $by_hand"
  as_root_quietly "${install[@]}" || die "could not install (shown above): $by_hand"
}
