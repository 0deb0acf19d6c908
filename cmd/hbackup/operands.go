package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"hbackup"
)

// backupRef is what people give to name a backup: its id, or that of one of its
// images.
type backupRef struct {
	backup hbackup.BackupID
	image  hbackup.ImageID // "" when the whole backup is meant
}

func (r backupRef) String() string {
	if r.image != "" {
		return string(r.image)
	}
	return string(r.backup)
}

// parseBackupRef reads the operand ID.
func parseBackupRef(c *cli.Context, s string) (backupRef, error) {
	if image := hbackup.ImageID(s); image.Validate() == nil {
		b, err := image.Backup()
		return backupRef{b, image}, err
	}
	if b := hbackup.BackupID(s); b.Validate() == nil {
		return backupRef{backup: b}, nil
	}
	return backupRef{}, bad(c, "%s is not the id of a backup or of an image", quoteOdd(s)).
		WithHint("ids look like 20261130T230501.123Z-7f3k2m9q4x; hbackup list shows them")
}

// verbOf names the verb as it is typed: "config show".
func verbOf(c *cli.Context) string {
	var words []string
	for _, up := range c.Lineage() {
		if up.Command != nil && up.Command.Name != "" && up.Command.Name != c.App.Name {
			words = append([]string{up.Command.Name}, words...)
		}
	}
	return strings.Join(words, " ")
}

// bad is a fault in the command line of a verb.
func bad(c *cli.Context, format string, args ...any) *hbackup.Error {
	return hbackup.Errorf(verbOf(c), "", hbackup.KindUsage, format, args...)
}

// required gives the value of a flag that must be there.
func required(c *cli.Context, flag, example string) (string, error) {
	v := c.String(flag)
	if v == "" {
		return "", bad(c, "the flag --%s is missing", flag).WithHint("for example --%s %s", flag, example)
	}
	return v, nil
}

// clusterName reads a flag that names a cluster; "" when it is not given.
func clusterName(c *cli.Context, flag string) (hbackup.ClusterName, error) {
	name := hbackup.ClusterName(c.String(flag))
	if !c.IsSet(flag) {
		return "", nil
	}
	if err := name.Validate(); err != nil {
		return "", bad(c, "--%s: %w", flag, err)
	}
	return name, nil
}

// tableName reads a flag that names one table; the zero value when it is not given.
func tableName(c *cli.Context, flag string) (hbackup.TableName, error) {
	if !c.IsSet(flag) {
		return hbackup.TableName{}, nil
	}
	t, err := hbackup.ParseTableName(c.String(flag))
	if err != nil {
		return t, bad(c, "--%s: %w", flag, err).WithHint("write it as table or namespace:table")
	}
	return t, nil
}

// tableNames reads a flag that names tables, separated by commas.
func tableNames(c *cli.Context, flag string) ([]hbackup.TableName, error) {
	var all []hbackup.TableName
	seen := map[hbackup.TableName]bool{}
	for _, list := range c.StringSlice(flag) {
		for word := range strings.SplitSeq(list, ",") {
			word = strings.TrimSpace(word)
			if word == "" {
				return nil, bad(c, "--%s: there is an empty name in %s", flag, quoteOdd(list))
			}
			t, err := hbackup.ParseTableName(word)
			if err != nil {
				return nil, bad(c, "--%s: %w", flag, err).WithHint("write it as table or namespace:table")
			}
			if seen[t] {
				return nil, bad(c, "--%s: %s is named twice", flag, t)
			}
			seen[t] = true
			all = append(all, t)
		}
	}
	return all, nil
}

// requestID reads --request-id, or makes a new one.
func requestID(c *cli.Context, now time.Time) (hbackup.RequestID, error) {
	id := hbackup.RequestID(c.String("request-id"))
	if !c.IsSet("request-id") {
		return hbackup.RequestID(hbackup.NewBackupID(now)), nil
	}
	if err := id.Validate(); err != nil {
		return "", bad(c, "--request-id: %w", err)
	}
	return id, nil
}

// moment reads a flag that holds a time; the zero time when it is not given.
func moment(c *cli.Context, flag string) (time.Time, error) {
	if !c.IsSet(flag) {
		return time.Time{}, nil
	}
	t, err := hbackup.ParseTime(c.String(flag))
	if err != nil {
		return t, hbackup.E(verbOf(c)+": --"+flag, "", hbackup.KindUsage, err)
	}
	return t, nil
}
