package config

import (
	"path"
	"path/filepath"
	"reflect"
	"strings"

	"hbackup"
	"hbackup/internal/nearest"
)

// check finds what is wrong between keys, and fills the defaults that are
// computed. Every value on its own is already good.
func (l *loader) check(cfg *Config) {
	if len(cfg.Clusters) == 0 {
		l.add(l.originOf("clusters"), "clusters", "see docs/configuration.md for a first one", "no cluster is defined")
	}
	for _, name := range l.names["locations"] {
		l.checkLocation(cfg.Locations[LocationName(name)])
	}
	for _, cl := range cfg.AllClusters() {
		l.checkCluster(cfg, cl)
	}
	l.absolute("index.directory", cfg.Index.Directory)
	l.checkPlaces(cfg)
	l.absolute("log.trace_store", cfg.Log.TraceStore)
	if len(l.list) == 0 {
		l.checkUse(cfg)
	}
}

func (l *loader) checkCluster(cfg *Config, cl *Cluster) {
	at := "clusters." + string(cl.Name)
	if cl.Name == hbackup.ProbeFolder {
		l.add(l.originOf(at), at, "choose another name", "locations are tried out in a folder of this name")
	}
	reg := at + ".registry"
	switch zk, masters := len(cl.Registry.ZooKeeper) > 0, len(cl.Registry.Masters) > 0; {
	case zk && masters:
		l.add(l.originOf(reg+".masters"), reg, "keep one of the two", "zookeeper and masters are both set")
	case !zk && !masters:
		l.add(l.originOf(reg), reg, "for example registry: {zookeeper: [zk1:2181], znode: /hbase}", "neither zookeeper nor masters is set")
	}
	if z := cl.Registry.ZNode; !strings.HasPrefix(z, "/") || path.Clean(z) != z {
		l.add(l.originOf(reg+".znode"), reg+".znode", "", "%q is not an absolute path in ZooKeeper", z)
	}
	if err := cl.Root.checkRoot(len(cl.NameNodes) > 0); err != nil {
		l.addErr(l.originOf(at+".root"), at+".root", err)
	}
	if cl.WAL == (URL{}) {
		cl.WAL = cl.Root
	} else if err := cl.WAL.checkRoot(len(cl.NameNodes) > 0); err != nil {
		l.addErr(l.originOf(at+".wal"), at+".wal", err)
	}
	if len(cl.NameNodes) > 0 && cl.Root.Scheme != "hdfs" {
		l.add(l.originOf(at+".namenodes"), at+".namenodes", "take the key out", "it applies to roots on hdfs:// only")
	}
	if cl.User == "" {
		name, err := l.opts.osUser()
		if err != nil {
			l.add(l.originOf(at), at+".user", "set it to the user that HBase should see", "the operating system's user has no name: %s", oneLine(err.Error()))
		}
		cl.User = name
	}
	l.reference(cfg, at+".target", cl.Target)
	for _, h := range cl.History {
		l.reference(cfg, at+".history", h)
	}
}

// reference checks that a key names a location.
func (l *loader) reference(cfg *Config, path string, name LocationName) {
	if cfg.Locations[name] != nil {
		return
	}
	known := l.names["locations"]
	hint := "no locations are defined; add one under locations"
	if near := nearest.To(string(name), known); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(known) > 0 {
		hint = "known locations: " + strings.Join(known, ", ")
	}
	l.add(l.originOf(path), path, hint, "there is no location %s", printable(string(name)))
}

func (l *loader) checkLocation(loc *Location) {
	path := "locations." + string(loc.Name)
	if err := loc.URL.checkLocation(len(loc.NameNodes) > 0); err != nil {
		l.addErr(l.originOf(path+".url"), path+".url", err)
		return
	}
	l.otherKinds(loc, path)
	if loc.URL.Scheme == "hdfs" {
		l.checkWebHDFS(loc, path)
	}
	if loc.BlockSize%512 != 0 {
		l.add(l.originOf(path+".block_size"), path+".block_size", "HDFS has a checksum for every 512 bytes", "%s is no multiple of 512 bytes", loc.BlockSize)
	}
	if loc.URL.Scheme == "gs" && (loc.PartSize%(256<<10) != 0 || loc.PartSize > 1<<30) {
		l.add(l.originOf(path+".part_size"), path+".part_size", "the chunks of gs:// must have one", "%s is no multiple of 256 KiB up to 1 GiB", loc.PartSize)
	}
	for name, secret := range loc.Secrets() {
		if secret.Env != "" && secret.File != "" {
			key := path + "." + name
			l.add(l.originOf(key+".file"), key, "keep one of the two", "env and file are both set")
		}
		l.absolute(path+"."+name+".file", secret.File)
	}
	l.absolute(path+".ca_file", loc.CAFile)
	l.absolute(path+".credentials_file", loc.CredentialsFile)
	l.checkS3(loc, path)
}

// checkWebHDFS looks at the keys that go with the key webhdfs.
func (l *loader) checkWebHDFS(loc *Location, path string) {
	if len(loc.WebHDFS) == 0 {
		const hint = "set webhdfs, too, or take the key out"
		if loc.CAFile != "" {
			l.add(l.originOf(path+".ca_file"), path+".ca_file", hint, "the native protocol of HDFS has no certificates")
		}
		if loc.DelegationToken.IsSet() {
			l.add(l.originOf(path+".delegation_token"), path+".delegation_token", hint, "the native protocol of HDFS takes no token here")
		}
		return
	}
	secure := 0
	for _, a := range loc.WebHDFS {
		if strings.HasPrefix(string(a), "https://") {
			secure++
		}
	}
	switch {
	case secure > 0 && secure < len(loc.WebHDFS):
		l.add(l.originOf(path+".webhdfs"), path+".webhdfs", "serve all of them over https", "some addresses are https and some are http")
	case secure == 0 && loc.DelegationToken.IsSet():
		l.warnings.add(l.originOf(path+".webhdfs"), path+".webhdfs", "", "the delegation token goes over the network in clear; use https")
	}
}

// absolute refuses files that would be others when hbackup is started elsewhere.
func (l *loader) absolute(path, file string) {
	if file != "" && !filepath.IsAbs(file) {
		l.add(l.originOf(path), path, "write the whole path", "%q is not an absolute path", file)
	}
}

// otherKinds reports keys that are set and belong to another kind of location.
func (l *loader) otherKinds(loc *Location, path string) {
	for _, n := range find("locations." + placeholder).below {
		if n.appliesTo(loc.URL.Scheme) {
			continue
		}
		l.eachKey(n, path+"."+n.key, func(key string, _ *node) {
			if s, ok := l.settings[key]; ok {
				l.add(s.origin, key, "take the key out", "it applies to %s only, and the location is %s", n.schemes(), loc.URL)
			}
		})
	}
}

// checkPlaces refuses locations that are the same place, or inside HBase.
func (l *loader) checkPlaces(cfg *Config) {
	names := l.names["locations"]
	for i, a := range names {
		for _, b := range names[:i] {
			x, y := cfg.Locations[LocationName(a)], cfg.Locations[LocationName(b)]
			path := "locations." + a + ".url"
			if x.Endpoint != y.Endpoint || x.URL == (URL{}) {
				continue
			}
			other := y.URL.seenFrom(x.URL, y.knownAs(), x.knownAs())
			switch {
			case x.URL == other:
				l.add(l.originOf(path), path, "one place has one name; refer to "+b, "%s is the location %s already", x.URL, b)
			case x.URL.Contains(other) || other.Contains(x.URL):
				l.warnings.add(l.originOf(path), path, "", "%s and the location %s (%s) lie inside each other", x.URL, b, y.URL)
			}
		}
	}
	for _, cl := range cfg.AllClusters() {
		for _, name := range names {
			loc := cfg.Locations[LocationName(name)]
			u := loc.URL
			for _, dir := range []URL{cl.Root, cl.WAL} {
				seen := dir.seenFrom(u, cl.NameNodes, loc.NameNodes)
				if dir != (URL{}) && (seen.Contains(u) || u.Contains(seen)) {
					path := "locations." + name + ".url"
					l.add(l.originOf(path), path, "choose a directory outside of "+dir.String(), "%s overlaps the HBase directory %s of cluster %s", u, dir, cl.Name)
					break
				}
			}
		}
	}
}

// checkUse warns about what is defined for nothing or cannot be read here.
func (l *loader) checkUse(cfg *Config) {
	used := map[LocationName]bool{}
	roots := map[string]string{}
	for _, cl := range cfg.AllClusters() {
		used[cl.Target] = true
		for _, h := range cl.History {
			used[h] = true
		}
		root := cl.Root.String() + " " + textOf(reflect.ValueOf(cl.NameNodes))
		if other := roots[root]; other != "" {
			path := "clusters." + string(cl.Name) + ".root"
			l.warnings.add(l.originOf(path), path, "", "it is also the root of cluster %s", other)
		}
		roots[root] = string(cl.Name)
	}
	for _, name := range l.names["locations"] {
		loc := cfg.Locations[LocationName(name)]
		path := "locations." + name
		if !used[loc.Name] {
			l.warnings.add(l.originOf(path), path, "", "no cluster uses it")
		}
		for key, secret := range loc.Secrets() {
			l.checkSecret(path+"."+key, secret)
		}
	}
}

// checkSecret warns when a secret is not there. It is no error: another verb,
// host or moment may have it.
func (l *loader) checkSecret(path string, s Secret) {
	if !s.IsSet() {
		return
	}
	if _, err := s.Read(); err != nil {
		origin := l.originOf(path)
		for _, key := range []string{".env", ".file"} {
			if set, ok := l.settings[path+key]; ok {
				origin = set.origin
			}
		}
		l.warnings.add(origin, path, "", "%s", oneLine(err.Error()))
	}
}
