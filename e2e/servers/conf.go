package servers

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"hbackup/e2e/java"
)

// Settings are properties of a Hadoop or HBase configuration.
type Settings map[string]string

// with gives a copy with more settings; later ones win.
func (s Settings) with(more ...Settings) Settings {
	all := maps.Clone(s)
	if all == nil {
		all = Settings{}
	}
	for _, m := range more {
		maps.Copy(all, m)
	}
	return all
}

// xml gives the text of a *-site.xml file.
func (s Settings) xml() []byte {
	var b bytes.Buffer
	b.WriteString("<configuration>\n")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		b.WriteString("  <property><name>")
		xml.EscapeText(&b, []byte(name))
		b.WriteString("</name><value>")
		xml.EscapeText(&b, []byte(s[name]))
		b.WriteString("</value></property>\n")
	}
	b.WriteString("</configuration>\n")
	return b.Bytes()
}

// writeConf writes a configuration directory: core-site.xml, hdfs-site.xml,
// hbase-site.xml and the logging set-up.
func writeConf(dir string, core, hdfs, hbase Settings) error {
	log, err := fs.ReadFile(java.Files, "log4j.properties")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"core-site.xml": core.xml(), "hdfs-site.xml": hdfs.xml(), "hbase-site.xml": hbase.xml(), "log4j.properties": log,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", text, 0o666); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}
