package s3

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// listServerEnv makes the test binary a server of listings in place of running
// tests, so that its processor time is not counted with the client's. Its value is
// the number of keys.
const listServerEnv = "S3_TEST_LIST_SERVER"

// serveListing gives pages of a bucket with that many keys, as S3 writes them, at
// next to no cost.
func serveListing(keys string) {
	n, err := strconv.Atoi(keys)
	l, lerr := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || lerr != nil {
		panic(fmt.Sprint(err, lerr))
	}
	fmt.Println(l.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // who started it is gone
	}()
	panic(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, _ := strconv.Atoi(r.URL.Query().Get("continuation-token"))
		page := listingPage(r.URL.Query().Get("prefix"), from, n)
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		w.Write(page)
	})))
}

func listingPage(prefix string, from, keys int) []byte {
	var b bytes.Buffer
	to := min(from+pageSize, keys)
	fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"+`<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>backups</Name><Prefix>%s</Prefix>`, prefix)
	if to < keys {
		fmt.Fprintf(&b, "<NextContinuationToken>%d</NextContinuationToken>", to)
	}
	fmt.Fprintf(&b, "<KeyCount>%d</KeyCount><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><IsTruncated>%v</IsTruncated>", to-from, to < keys)
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `<Contents><Key>%sprod/archive/data/default/orders/d41d8cd98f00b204e9800998ecf8427e/cf/%032x</Key><LastModified>2026-11-30T22:01:02.000Z</LastModified>`+
			`<ETag>&quot;9b2cf535f27731c974343645a3985328-2&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType>`+
			`<Size>%d</Size><StorageClass>STANDARD</StorageClass></Contents>`, prefix, i, 1000+i)
	}
	b.WriteString("</ListBucketResult>")
	return b.Bytes()
}

// startListServer starts a server of so many keys and gives a store that lists
// them.
func startListServer(t testing.TB, keys int) *Store {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), listServerEnv+"="+strconv.Itoa(keys))
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // it ends with us
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); cmd.Wait() })
	c := configFor(t, gateway)
	c.Endpoint = "http://" + strings.TrimSpace(address)
	return open(t, c)
}
