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
// hbase-site.xml and the logging set-up. The name node's audit log goes to the
// audit file, or with the rest when that is empty.
func writeConf(dir, audit string, core, hdfs, hbase Settings) error {
	log, err := fs.ReadFile(java.Files, "log4j.properties")
	if err != nil {
		return err
	}
	if audit != "" {
		log = fmt.Appendf(log, auditLog, audit)
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

const auditLog = `
log4j.logger.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=INFO,audit
log4j.additivity.org.apache.hadoop.hdfs.server.namenode.FSNamesystem.audit=false
log4j.appender.audit=org.apache.log4j.FileAppender
log4j.appender.audit.File=%s
log4j.appender.audit.layout=org.apache.log4j.PatternLayout
log4j.appender.audit.layout.ConversionPattern=time=%%d{yyyy-MM-dd'T'HH:mm:ss.SSSZ}\t%%m%%n
`
