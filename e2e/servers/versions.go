package servers

// Version names one of the HBase versions that the tests run against; it is the
// id of a profile in e2e/java/pom.xml, where the exact versions are pinned.
type Version string

const (
	HBase24 Version = "2.4" // HBase 2.4.18 on Hadoop 2.10.2
	HBase25 Version = "2.5" // HBase 2.5.13 on Hadoop 3.4.2
	HBase26 Version = "2.6" // HBase 2.6.4 on Hadoop 3.4.2, with codecs and MapReduce tools: the main version
	HBase30 Version = "3.0" // HBase 3.0.0-alpha-4 on Hadoop 3.4.2
)

// Versions lists all of them, oldest first.
func Versions() []Version { return []Version{HBase24, HBase25, HBase26, HBase30} }

// OrDefault gives the main version for the zero value.
func (v Version) OrDefault() Version {
	if v == "" {
		return HBase26
	}
	return v
}
