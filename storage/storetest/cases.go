package storetest

// Topic is what a case is about, in an operator's words.
type Topic string

const (
	OnPuts       Topic = "whole or absent"
	OnDigests    Topic = "wrong digests refused"
	OnCreation   Topic = "create if absent"
	OnReads      Topic = "reading"
	OnDeletion   Topic = "deleting"
	OnKeys       Topic = "names"
	OnListing    Topic = "listing"
	OnCancelling Topic = "cancelling"
	OnHeld       Topic = "held uploads"
	OnClock      Topic = "time goes on"
)

// Case is one promise of the contract.
type Case struct {
	Name  string
	Topic Topic
	Brief bool // part of the short selection for a store that is far away
	run   func(*env)
}

// Cases gives all of them.
func Cases() []Case { return append([]Case(nil), cases...) }

const (
	brief = true
	full  = false
)

var cases = []Case{
	{"RoundTrip", OnPuts, brief, roundTrip},
	{"Sizes", OnPuts, brief, sizes},
	{"OddReaders", OnPuts, full, oddReaders},
	{"Overwrite", OnPuts, brief, overwrite},
	{"OverwriteWhileRead", OnPuts, full, overwriteWhileRead},
	{"ExpectedDigest", OnDigests, brief, expectedDigest},
	{"BodyOfWrongSize", OnPuts, brief, bodyOfWrongSize},
	{"BodyThatFails", OnPuts, full, bodyThatFails},
	{"NothingVisibleDuringPut", OnPuts, brief, nothingVisibleDuringPut},
	{"IfAbsent", OnCreation, brief, ifAbsent},
	{"IfAbsentRace", OnCreation, brief, ifAbsentRace},
	{"IfAbsentRaceInParts", OnCreation, brief, ifAbsentRaceInParts},
	{"Ranges", OnReads, brief, ranges},
	{"RangesThatCannotBe", OnReads, full, rangesThatCannotBe},
	{"CloseEarly", OnReads, full, closeEarly},
	{"DeleteWhileRead", OnReads, full, deleteWhileRead},
	{"NotFound", OnReads, brief, notFound},
	{"Delete", OnDeletion, brief, deleteOne},
	{"DeleteBatch", OnDeletion, brief, deleteBatch},
	{"DeleteBatchInvalidKeys", OnDeletion, full, deleteBatchInvalidKeys},
	{"OddKeys", OnKeys, brief, oddKeys},
	{"InvalidKeys", OnKeys, full, invalidKeys},
	{"KeyBelowKey", OnKeys, full, keyBelowKey},
	{"FolderIsNoObject", OnKeys, brief, folderIsNoObject},
	{"FolderMarkers", OnKeys, full, folderMarkers},
	{"ListEmpty", OnListing, full, listEmpty},
	{"ListOrder", OnListing, brief, listOrder},
	{"ListPrefixIsAString", OnListing, brief, listPrefixIsAString},
	{"ListFolders", OnListing, brief, listFolders},
	{"ListMany", OnListing, brief, listMany},
	{"ListStopsEarly", OnListing, full, listStopsEarly},
	{"ListAfterChange", OnListing, brief, listAfterChange},
	{"CancelledBeforeStart", OnCancelling, full, cancelledBeforeStart},
	{"CancelledDuringPut", OnCancelling, brief, cancelledDuringPut},
	{"CancelledDuringRead", OnCancelling, full, cancelledDuringRead},
	{"CancelledDuringList", OnCancelling, full, cancelledDuringList},
	{"ManyWriters", OnPuts, full, manyWriters},
	{"LargeObject", OnPuts, full, largeObject},
	{"ServerTime", OnClock, brief, serverTime},
	{"Location", OnKeys, brief, location},
}

func isCase(name string) bool {
	for _, c := range cases {
		if c.Name == name {
			return true
		}
	}
	return false
}
