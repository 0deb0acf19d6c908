// Package faulty is a store that fails on command, for tests of what its users
// do then.
//
// What fails is written as a script of rules, separated by ';':
//
//	put#3:lost                 the third Put is done, and its answer is lost
//	put[images/]#1:fail        the first Put under a key with "images/" in it is not done
//	any#17:fail=denied         the seventeenth call of all, whatever it is
//	get#*:flip                 every reader gives one wrong bit
//	list#2+:drop=0.1           from the second on, listings leave out a tenth of the objects
//	put[images/*.image]#1:late=3  the first Put under such a key is done three calls later
//	stat#%5:fail=throttled     every fifth
//	batch#1-3:some             in the first three batches some keys stay
//
// The grammar:
//
//	script    = rule { ";" rule }
//	rule      = operation [ "[" part "]" ] "#" which ":" fault [ "=" argument ]
//	operation = "put" | "get" | "stat" | "list" | "delete" | "batch" | "time" | held | "any"
//	held      = "open" | "fill" | "finish" | "drop" | "uploads"
//	part      = what the key, or a listing's prefix, has in it; "*" stands for anything
//	which     = "*" | n | n "+" | n "-" n | "%" n
//
// The operations on held uploads have names of their own, with "uploads" for
// listing them. A call is counted, from 1, by each rule that it matches in
// operation and key; the first rule that applies to it decides.
//
// Faults, with their arguments and what they are without one:
//
//	fail=kind    nothing is done; an error of that hbackup.Kind (unavailable)
//	lost=kind    it is done; an error nevertheless (timeout). A Get is not opened
//	half=kind    half of the body or of the object passes, then the error
//	             (unavailable); a listing breaks off in the middle
//	reset=p      the same at that share of the bytes or objects (0.5); unavailable
//	twice        it is done twice, as if somebody on the way had sent it again; the
//	             answer is the second one
//	late=n       a put or a deletion gives a timeout, and is done just before the
//	             n-th call after it (1), whoever makes that
//	skew=d       the clock is off by d (20m), which may be negative: a lie
//	cut          an object ends after its half, or a listing after its half, as
//	             if that were all: a lie
//	flip         one bit of the object is wrong: a lie
//	drop=p       each object is left out of a listing with that probability
//	             (0.5): a lie
//	truncate=n   a listing ends after n objects (1) as if that were all: a lie
//	repeat       each object comes twice in a listing: a lie
//	some=kind    every other key of a batch stays and is reported with the kind
//	             (unavailable)
//	delay=d      it takes that much longer (10ms)
//	hang         it waits until the context is over
//
// A fault that has no meaning for an operation is refused when the script is
// read; a rule for any passes over the operations that it cannot be for.
package faulty
