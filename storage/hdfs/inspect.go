package hdfs

import (
	"context"
	"fmt"

	"hbackup"
	client "hbackup/internal/hdfs"
	"hbackup/storage"
)

// Rights names the modes of directories.
func (s *Store) Rights() storage.Rights {
	return storage.Rights{List: "read (r) and execute (x)", Get: "read (r) and execute (x)", Put: "write (w)", Delete: "write (w)"}
}

// facts is a file system that tells of itself; the one over HTTP does not.
type facts interface {
	Facts(ctx context.Context, path string) (client.Facts, error)
}

// littleRoom is the share, in per cent, below which what is left counts as little.
const littleRoom = 5

// Inspect asks the name node for replication, room and quotas. Encryption zones,
// erasure coding, sealed answers and safe mode are met by writing, which is refused
// there.
func (s *Store) Inspect(ctx context.Context, _ string, _ storage.Terms) []storage.Finding {
	asked, ok := s.fs.(facts)
	if !ok {
		return []storage.Finding{{Name: "name node", Verdict: storage.Fine, Detail: "it is reached over HTTP, where it tells nothing of room, replication and quotas"}}
	}
	f, err := asked.Facts(ctx, s.path)
	if err != nil {
		return []storage.Finding{{Name: "name node", Verdict: storage.Caution, Detail: "room, replication and quotas cannot be told: " + err.Error(), Hint: orElse(hbackup.HintOf(err), "see hdfs dfsadmin -report")}}
	}
	return append([]storage.Finding{
		share("free space", f.Remaining, f.Capacity, bytesOf, "free space on the data nodes, or add some (hdfs dfsadmin -report)"),
		s.judgeReplication(f),
	}, s.judgeQuotas(f)...)
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// share judges what is left of something.
func share(name string, left, all uint64, write func(uint64) string, hint string) storage.Finding {
	f := storage.Finding{Name: name, Verdict: storage.Fine, Detail: fmt.Sprintf("%s of %s", write(left), write(all))}
	switch {
	case left == 0:
		f.Verdict, f.Hint = storage.Harmful, hint
	case left < all/100*littleRoom:
		f.Verdict, f.Hint = storage.Caution, hint
	}
	return f
}

func bytesOf(n uint64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
func namesOf(n uint64) string { return fmt.Sprintf("%d files and directories", n) }

func (s *Store) judgeReplication(f client.Facts) storage.Finding {
	n, why := f.Replication, "as the name node says"
	if s.replication > 0 {
		n, why = s.replication, "as the configuration says"
	}
	out := storage.Finding{Name: "replication", Verdict: storage.Fine, Detail: fmt.Sprintf("replicas of each file: %d, %s", n, why)}
	if n < 2 {
		out.Verdict, out.Hint = storage.Caution, "with one replica the loss of a disk is the loss of backups: set replication to 2 or 3"
	}
	return out
}

func (s *Store) judgeQuotas(f client.Facts) []storage.Finding {
	hint := "raise it: hdfs dfsadmin -setQuota or -setSpaceQuota for " + s.path
	var all []storage.Finding
	if f.NameQuota > 0 {
		all = append(all, share("quota of names", left(f.NameQuota, f.Names), uint64(f.NameQuota), namesOf, hint))
	}
	if f.SpaceQuota > 0 {
		all = append(all, share("quota of space", left(f.SpaceQuota, f.SpaceUsed), uint64(f.SpaceQuota), bytesOf, hint))
	}
	if len(all) == 0 {
		all = append(all, storage.Finding{Name: "quotas", Verdict: storage.Fine, Detail: "the directory itself has none"})
	}
	return all
}

func left(quota, used int64) uint64 { return uint64(max(0, quota-used)) }

// Sweep has nothing to do: what was not published is swept by itself.
func (s *Store) Sweep(context.Context, string) error { return nil }
