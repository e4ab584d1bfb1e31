# Debian packages that Orbit needs, by name. Sourced by quickstart and check: `need_packages build`, `need_packages check` or
# `need_packages analysis` (static analysis and valgrind, tests/analysis/run) installs what is missing and nothing else.

packages_build="gcc libc6-dev make cmake ninja-build pkg-config liblmdb-dev libmsgpack-dev libmicrohttpd-dev libgnutls28-dev
 libssl-dev libwebsockets-dev libwebsockets-evlib-uv libxxhash-dev libsodium-dev libinih-dev libsystemd-dev libcurl4-openssl-dev tzdata"
packages_check="$packages_build clang libclang-rt-14-dev libcmocka-dev libjansson-dev libyajl-dev curl openssl clang-format
 lld scdoc python3-minimal python3 python3-yaml python3-jsonschema valgrind"
packages_analysis="$packages_check clang-tidy cppcheck"

need_packages() {
  case $1 in
    build) wanted=$packages_build ;;
    check) wanted=$packages_check ;;
    analysis) wanted=$packages_analysis ;;
  esac
  missing=""
  for package in $wanted; do
    state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) || state=""
    [ "$state" = "install ok installed" ] || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "packages are missing, and there is no sudo here to install them with. As root:" >&2
      echo "  apt-get update && apt-get install --no-install-recommends$missing" >&2
      return 3
    }
    as_root=sudo
  fi
  echo "installing:$missing" >&2
  # shellcheck disable=SC2086
  { $as_root apt-get update -q && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } \
    >&2 || { echo "the packages could not be installed:$missing" >&2; return 3; }
}
