// Package faulty is a store that fails on command, for tests of what its users
// do then.
//
// What fails is written as a script of rules, separated by ';':
//
//	operation [ '[' part of key ']' ] '#' which ':' fault [ '=' argument ]
//
//	put#3:lost                 the third Put is done, and its answer is lost
//	put[images/]#1:fail        the first Put under a key with "images/" in it is not done
//	any#17:fail=denied         the seventeenth call of all, whatever it is
//	get#*:flip                 every reader gives one wrong bit
//	list#2+:drop=0.1           from the second on, listings leave out a tenth of the objects
//	stat#%5:fail=throttled     every fifth
//	batch#1-3:some             in the first three batches some keys stay
//
// Operations are put, get, stat, list, delete, batch, time; of held uploads open,
// fill, finish, drop and uploads, which lists them; and any for all of them. A call is counted, from 1, by each rule that it matches in operation and
// key; the first rule that applies to it decides.
//
// Faults, with their arguments and what they are without one:
//
//	fail=kind    nothing is done; an error of that hbackup.Kind (unavailable)
//	lost=kind    it is done; an error nevertheless (timeout). A Get is not opened
//	half=kind    half of the body or of the object passes, then the error
//	             (unavailable); a listing breaks off in the middle
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
