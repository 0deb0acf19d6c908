package rpc

import (
	"strings"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// Names are checked here before they are sent, because servers do not: a
// snapshot named a/b blocks its table for minutes or makes a snapshot that can
// be neither listed nor deleted.

const maxName = 200 // bytes; a file name in HDFS has 255, and HBase appends to it

func checkTable(op string, t hbackup.TableName) error {
	if err := t.Validate(); err != nil {
		return hbackup.E(op, t.String(), hbackup.KindUsage, err)
	}
	return nil
}

func checkNamespace(op, ns string) error {
	if err := (hbackup.TableName{Namespace: ns, Qualifier: "x"}).Validate(); err != nil {
		return hbackup.Errorf(op, ns, hbackup.KindUsage, "%q is not a name space: letters, digits and '_'", ns)
	}
	return nil
}

// checkSnapshot applies the rule of table qualifiers, in ASCII.
func checkSnapshot(op, name string) error {
	if len(name) > maxName {
		return hbackup.Errorf(op, name[:maxName], hbackup.KindUsage, "the snapshot name is longer than %d bytes", maxName)
	}
	if !matches(name, "_", "-.") {
		return hbackup.Errorf(op, name, hbackup.KindUsage, "%q is not a snapshot name: letters, digits, '_', '-' and '.', not starting with '-' or '.'", name)
	}
	return nil
}

// checkPeer: servers refuse '-' because it separates the parts of queue names.
func checkPeer(op, id string) error {
	if len(id) > maxName || !matches(id, "_", ".") {
		return hbackup.Errorf(op, id, hbackup.KindUsage, "%q is not a peer id: letters, digits, '_' and '.'", id)
	}
	return nil
}

// matches reports whether all of s is ASCII letters, digits and the extra
// characters, of which those in later may not come first.
func matches(s string, anywhere, later string) bool {
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch {
		case b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z':
		case strings.IndexByte(anywhere, b) >= 0:
		case i > 0 && strings.IndexByte(later, b) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

func tableProto(t hbackup.TableName) *hbpb.TableName {
	return &hbpb.TableName{Namespace: []byte(t.Namespace), Qualifier: []byte(t.Qualifier)}
}

func tableName(t *hbpb.TableName) hbackup.TableName {
	return hbackup.TableName{Namespace: string(t.GetNamespace()), Qualifier: string(t.GetQualifier())}
}
