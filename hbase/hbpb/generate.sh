#!/bin/sh
# Makes the Go code from the .proto files in this directory.
set -e
cd "$(dirname "$0")"
command -v protoc-gen-go >/dev/null || PATH="$PATH:$(go env GOPATH)/bin"
files=""
for f in *.proto; do files="$files hbackup/hbase/hbpb/$f"; done
# The mapped import path is the name under which the files are registered in a
# binary; it must not collide with another client's.
protoc --proto_path=hbackup/hbase/hbpb=. --go_out=../.. --go_opt=module=hbackup $files
