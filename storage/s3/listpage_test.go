package s3

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// byReflection reads a listing with encoding/xml.
func byReflection(doc []byte) (*page, error) {
	var v struct {
		XMLName     xml.Name
		IsTruncated bool
		KeyCount    *int64
		Token       string `xml:"NextContinuationToken"`
		Encoding    string `xml:"EncodingType"`
		Contents    []struct {
			Key          string
			Size         int64
			LastModified *time.Time
		}
	}
	if err := xml.Unmarshal(doc, &v); err != nil {
		return nil, err
	}
	if v.XMLName.Local != "ListBucketResult" {
		return nil, errors.New("another root")
	}
	p := &page{count: -1, truncated: v.IsTruncated, token: v.Token, encoding: v.Encoding}
	if v.KeyCount != nil {
		p.count = *v.KeyCount
	}
	for _, c := range v.Contents {
		e := entry{name: c.Key, size: c.Size}
		if c.LastModified != nil {
			e.modified = *c.LastModified
		}
		if p.encoding == "url" {
			name, err := url.QueryUnescape(e.name)
			if err != nil {
				return nil, err
			}
			e.name = name
		}
		p.entries = append(p.entries, e)
	}
	return p, nil
}

func samePage(a, b *page) bool {
	return a.count == b.count && a.truncated == b.truncated && a.token == b.token && a.encoding == b.encoding &&
		slices.EqualFunc(a.entries, b.entries, func(x, y entry) bool {
			return x.name == y.name && x.size == y.size && x.modified.Equal(y.modified)
		})
}

func describePage(p *page) string {
	return fmt.Sprintf("%d, %v, %q, %q, %+v", p.count, p.truncated, p.token, p.encoding, p.entries)
}

const awsPage = `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>backups</Name><Prefix>a%2F</Prefix><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><Contents><Key>a/b+c%2Bd</Key><LastModified>2026-11-30T22:01:02.000Z</LastModified><ETag>&quot;d41d8cd98f00b204e9800998ecf8427e-2&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><ChecksumType>FULL_OBJECT</ChecksumType><Size>12345</Size><StorageClass>STANDARD</StorageClass></Contents><Contents><Key>a/z</Key><LastModified>2026-11-30T22:01:02.000Z</LastModified><ETag>&quot;x&quot;</ETag><Size>0</Size><Owner><ID>1</ID><DisplayName/></Owner></Contents></ListBucketResult>`

func TestListPage(t *testing.T) {
	var p page
	if err := p.parse([]byte(awsPage)); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 22, 1, 2, 0, time.UTC)
	want := &page{count: 2, truncated: true, token: "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=", encoding: "url",
		entries: []entry{{"a/b c+d", 12345, at}, {"a/z", 0, at}}}
	if !samePage(&p, want) {
		t.Fatalf("got %s", describePage(&p))
	}
	if err := p.parse([]byte(`<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`)); err != nil || len(p.entries) != 0 || p.truncated || p.count != -1 || p.token != "" {
		t.Fatalf("an empty page after it: %s, %v", describePage(&p), err)
	}
}

func TestListPageRefused(t *testing.T) {
	const good = `<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>k</Key><Size>1</Size></Contents></ListBucketResult>`
	var p page
	if err := p.parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{"<Size>1</Size>", ""},
		{"<Size>1</Size>", "<Size></Size>"},
		{"<Size>1</Size>", "<Size/>"},
		{"<Size>1</Size>", "<Size>-1</Size>"},
		{"<Size>1</Size>", "<Size>9223372036854775808</Size>"},
		{"<Size>1</Size>", "<Size>1</Size><Size>2</Size>"},
		{"<Size>1</Size>", "<Size>1<b>2</b></Size>"},
		{"<Key>k</Key>", ""},
		{"<Key>k</Key>", "<Key>k</Key><Key>l</Key>"},
		{"<Key>k</Key>", "<Key>&nbsp;</Key>"},
		{"<Key>k</Key>", "<Key>a]]>b</Key>"},
		{"<Key>k</Key>", "<Key>\x01</Key>"},
		{"<Key>k</Key>", "<Key>\xff</Key>"},
		{"<Key>k</Key>", "<Key>&#0;</Key>"},
		{"<Key>k</Key>", "<Key>&#x110000;</Key>"},
		{"<Key>k</Key>", "<Key>k</Kez>"},
		{"<IsTruncated>false</IsTruncated>", ""},
		{"<IsTruncated>false</IsTruncated>", "<IsTruncated>no</IsTruncated>"},
		{"<IsTruncated>", "<EncodingType>rot13</EncodingType><IsTruncated>"},
		{"<Key>k</Key>", "<Key>%zz</Key><EncodingType>url</EncodingType>"},
		{"<IsTruncated>", "<!DOCTYPE x><IsTruncated>"},
		{"ListBucketResult", "ListAllMyBucketsResult"},
		{good, good + good},
		{good, "<Error><Code>AccessDenied</Code></Error>"},
	} {
		doc := strings.ReplaceAll(good, change[0], change[1])
		if strings.Contains(change[1], "EncodingType>url") {
			doc = strings.Replace(good, "<Key>k</Key>", "<Key>%zz</Key>", 1)
			doc = strings.Replace(doc, "<IsTruncated>", "<EncodingType>url</EncodingType><IsTruncated>", 1)
		}
		if err := p.parse([]byte(doc)); err == nil {
			t.Errorf("%s is taken for %s", doc, describePage(&p))
		}
	}
	for n := range len(good) {
		if err := p.parse([]byte(good[:n])); err == nil {
			t.Errorf("the first %d bytes are taken for a listing", n)
		}
	}
}

// TestListPageLikeXML writes listings in the many ways that XML allows and wants
// what encoding/xml makes of them.
func TestListPageLikeXML(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := drawListing(t)
		want, err := byReflection([]byte(doc))
		if err != nil {
			t.Fatalf("encoding/xml does not take %s: %v", doc, err)
		}
		var got page
		if err := got.parse([]byte(doc)); err != nil {
			t.Fatalf("%s is refused: %v", doc, err)
		}
		if !samePage(&got, want) {
			t.Fatalf("%s gives %s; want %s", doc, describePage(&got), describePage(want))
		}
	})
}

func drawListing(t *rapid.T) string {
	var b strings.Builder
	gap := func() {
		b.WriteString(rapid.SampledFrom([]string{"", "", "", "\n  ", "\r\n\t", "<!-- - not a <tag> -->", " <!----> "}).Draw(t, "gap"))
	}
	prefix := rapid.SampledFrom([]string{"", "", "s3:"}).Draw(t, "prefix")
	element := func(name, content string) {
		gap()
		attrs := rapid.SampledFrom([]string{"", "", "", ` a="1"`, " xsi:type = 'x>y' ", "\n"}).Draw(t, "attributes")
		if content == "" && rapid.Bool().Draw(t, "short") {
			b.WriteString("<" + prefix + name + attrs + "/>")
			return
		}
		b.WriteString("<" + prefix + name + attrs + ">" + content + "</" + prefix + name + rapid.SampledFrom([]string{"", " "}).Draw(t, "space") + ">")
	}
	inner := func(write func()) string {
		whole := b.String()
		b.Reset()
		write()
		content := b.String()
		b.Reset()
		b.WriteString(whole)
		return content
	}
	unknown := func() {
		if rapid.IntRange(0, 3).Draw(t, "unknown") == 0 {
			element("Owner", inner(func() {
				element("ID", drawText(t, "a&<b>"))
				b.WriteString(drawText(t, "and more"))
				element("Key", "not the object's")
				gap()
			}))
		}
	}
	encoded := rapid.Bool().Draw(t, "encoded")
	b.WriteString(rapid.SampledFrom([]string{"", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", "<?xml version='1.0' ?>", "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>"}).Draw(t, "first line"))
	element("ListBucketResult", inner(func() {
		count := rapid.IntRange(0, 4).Draw(t, "objects")
		element("IsTruncated", rapid.SampledFrom([]string{"true", "false", " true\n"}).Draw(t, "truncated"))
		if rapid.Bool().Draw(t, "counted") {
			element("KeyCount", fmt.Sprint(count))
		}
		unknown()
		if rapid.Bool().Draw(t, "token") {
			element("NextContinuationToken", drawText(t, rapid.String().Draw(t, "token")))
		}
		for range count {
			element("Contents", inner(func() {
				name := rapid.String().Draw(t, "name")
				if encoded {
					name = url.QueryEscape(name)
				}
				element("Key", drawText(t, name))
				unknown()
				element("Size", fmt.Sprint(rapid.Int64Range(0, 1<<62).Draw(t, "size")))
				if rapid.Bool().Draw(t, "dated") {
					element("LastModified", time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "ms")).UTC().Format("2006-01-02T15:04:05.000Z"))
				}
				gap()
			}))
		}
		if encoded {
			element("EncodingType", "url")
		}
		gap()
	}))
	gap()
	return b.String()
}

// drawText writes characters in one of the ways that XML has for them.
func drawText(t *rapid.T, s string) string {
	var b strings.Builder
	for _, r := range s {
		if !isXML(r) {
			continue
		}
		switch way := rapid.IntRange(0, 9).Draw(t, "way"); {
		case way == 0:
			fmt.Fprintf(&b, "&#x%X;", r)
		case way == 1:
			fmt.Fprintf(&b, "&#%d;", r)
		case way == 2:
			fmt.Fprintf(&b, "<![CDATA[%c]]>", r)
		case way == 3:
			b.WriteString("<!-- between -->")
			fallthrough
		default:
			xml.EscapeText(&b, []byte(string(r)))
		}
	}
	return b.String()
}

// FuzzListPage holds the scanner against encoding/xml: what the one takes the
// other takes as well, for the same.
func FuzzListPage(f *testing.F) {
	for _, s := range []string{
		awsPage, "", "<", "<ListBucketResult/>", "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
		"<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>a\r\nb&#13;<![CDATA[\r<&]]></Key><Size> 7 </Size></Contents></ListBucketResult>",
		"<a:ListBucketResult xmlns:a='b'><IsTruncated>true</IsTruncated><x><y z=\"1\"/>t<!-- c --></x></a:ListBucketResult>",
		"<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated><X>&amp;]]&gt;</X></ListBucketResult><!-- -->",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		var got page
		if got.parse(doc) != nil {
			return
		}
		want, err := byReflection(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf")))
		if err != nil {
			t.Fatalf("%q gives %s; encoding/xml says %v", doc, describePage(&got), err)
		}
		if !samePage(&got, want) {
			t.Fatalf("%q gives %s; want %s", doc, describePage(&got), describePage(want))
		}
	})
}
