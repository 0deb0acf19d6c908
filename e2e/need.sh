#!/bin/sh
# Makes sure of what the real servers need: Go, a JDK and Maven. As root on
# Debian what is missing is installed; otherwise the command to do so is printed
# and nothing else happens.
set -eu
need=""
command -v javac >/dev/null 2>&1 || need="$need default-jdk-headless"
command -v mvn   >/dev/null 2>&1 || need="$need maven"
if ! command -v go >/dev/null 2>&1; then
	echo "hbackup is built with Go 1.26 or newer, and there is no go on the path." >&2
	echo "Install it from your distribution or from go.dev, then run this again." >&2
	exit 1
fi
[ -z "$need" ] && exit 0
install="apt-get install -y --no-install-recommends$need"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
	echo "installing:$need"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive $install >/dev/null
	exit 0
fi
echo "The tests start real HBase servers and need:$need" >&2
echo "On Debian, as root:  apt-get update && $install" >&2
exit 1
