package restore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/catalog"
	"hbackup/hbase/hbpb"
	"hbackup/hbase/rpc"
	"hbackup/hbase/snapshot"
)

func (q Request) validate(target Target) error {
	table := q.table()
	const op = "restore"
	for _, err := range []error{q.ID.Validate(), q.Image.ID.Validate(), q.Image.Table.Validate(), table.Validate(), target.Name.Validate()} {
		if err != nil {
			return hbackup.E(op, table.String(), hbackup.KindUsage, err)
		}
	}
	if table.IsSystem() || q.Image.Table.IsSystem() {
		return hbackup.Errorf(op, table.String(), hbackup.KindRefused, "tables of the name space %q are HBase's own; one of another moment or cluster would break it", hbackup.SystemNamespace)
	}
	if table.Namespace == snapshot.StageNamespace {
		return hbackup.Errorf(op, table.String(), hbackup.KindRefused, "restores keep their files under the name space %q", snapshot.StageNamespace).
			WithHint("choose another name space")
	}
	return nil
}

// checkTarget looks for what the cluster lacks. Conflicts are reasons not to
// begin; makeNamespace says that the name space has to be made.
func (r *run) checkTarget(ctx context.Context) (conflicts []error, makeNamespace bool, err error) {
	version, err := r.target.Master.Version(ctx)
	if err != nil {
		return nil, false, hbackup.E("reach cluster", string(r.target.Name), hbackup.KindOther, err)
	}
	if err := r.checkVersion(version); err != nil {
		conflicts = append(conflicts, err)
	}
	root := r.target.FS.URI() + r.target.Root
	info, err := r.target.FS.Stat(ctx, r.target.Root)
	switch {
	case hbackup.IsKind(err, hbackup.KindNotFound), err == nil && !info.Dir:
		return nil, false, hbackup.Errorf("look into HBase's root directory", root, hbackup.KindUsage, "there is no such directory").
			WithHint("set clusters.%s.root to the value of hbase.rootdir", r.target.Name)
	case err != nil:
		return nil, false, hbackup.E("look into HBase's root directory", root, hbackup.KindOther, err)
	}
	all, err := r.target.Master.Namespaces(ctx)
	if err != nil {
		return nil, false, hbackup.E("list name spaces of", string(r.target.Name), hbackup.KindOther, err)
	}
	ns := r.req.table().Namespace
	if slices.ContainsFunc(all, func(n rpc.Namespace) bool { return n.Name == ns }) {
		return conflicts, false, nil
	}
	if !r.req.CreateNamespace {
		conflicts = append(conflicts, hbackup.Errorf("restore", r.req.table().String(), hbackup.KindNotFound, "cluster %s has no name space %q", r.target.Name, ns).
			WithHint("run it with --create-namespace, or restore to another name with --as"))
	}
	return conflicts, true, nil
}

// checkVersion refuses a cluster whose HBase is of an older line than the
// source's: it may not know the files' format, and finds out row by row.
func (r *run) checkVersion(version rpc.Version) error {
	source, err := rpc.ParseVersion(r.image.HBaseVersion)
	older := err == nil && !version.AtLeast(source.Major, source.Minor)
	switch {
	case err != nil:
		r.note("the HBase versions of source (%q) and target (%s) cannot be compared", r.image.HBaseVersion, version)
	case older && r.req.AllowOlderHBase:
		r.note("the target's HBase %s is older than the source's %s", version, source)
	case older:
		return hbackup.Errorf("restore", r.req.table().String(), hbackup.KindRefused, "cluster %s runs HBase %s, the backup is of HBase %s; an older HBase may not read its files", r.target.Name, version, source).
			WithHint("restore to a cluster of the same or a newer version, or allow it with --allow-older-hbase")
	}
	return nil
}

// notesOn gives what the operator should know of a table before it is restored:
// what it needs that is not in the backup.
func notesOn(im *catalog.Image, m *snapshot.Manifest) []string {
	var notes []string
	if im.Disabled {
		notes = append(notes, "the table was disabled when it was backed up; the restored one is enabled")
	}
	var schema hbpb.TableSchema
	if err := proto.Unmarshal(m.Schema.Raw, &schema); err != nil {
		return append(notes, fmt.Sprintf("the table's attributes cannot be read: %v", err))
	}
	for _, a := range schema.GetAttributes() {
		if key := string(a.GetFirst()); strings.HasPrefix(strings.ToLower(key), "coprocessor$") {
			notes = append(notes, fmt.Sprintf("the table loads the coprocessor %q: without its class on the servers the clone is refused", coprocessorClass(string(a.GetSecond()))))
		}
	}
	for i := range m.Schema.Families {
		f := &m.Schema.Families[i]
		if f.Attributes["ENCRYPTION"] != "" {
			notes = append(notes, fmt.Sprintf("family %q is encrypted: the cluster needs the source's master key", string(f.Name)))
		}
	}
	return notes
}

// coprocessorClass takes the class out of "path|class|priority|arguments".
func coprocessorClass(value string) string {
	if parts := strings.Split(value, "|"); len(parts) > 1 {
		return strings.TrimSpace(parts[1])
	}
	return value
}
