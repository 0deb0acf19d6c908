package main

import (
	"context"
	"fmt"
	"strings"

	"hbackup"
)

// exitCode is the status of the process. The numbers are a promise: scripts
// depend on them. See docs/exit-codes.md.
type exitCode int

const (
	exitDone        exitCode = 0
	exitFailed      exitCode = 1
	exitUsage       exitCode = 2
	exitPartial     exitCode = 3
	exitNotFound    exitCode = 10
	exitBusy        exitCode = 11
	exitDenied      exitCode = 12
	exitOutside     exitCode = 13
	exitDamaged     exitCode = 14
	exitRefused     exitCode = 15
	exitInterrupted exitCode = 130
)

// exitCodes lists all codes with the kinds that lead to them, in the order of
// the documentation. Kinds that are not named here lead to exitFailed.
var exitCodes = []struct {
	code    exitCode
	meaning string
	kinds   []hbackup.Kind
}{
	{exitDone, "done, or already done by an earlier run of the same request", nil},
	{exitFailed, "failed; the message says why", []hbackup.Kind{hbackup.KindOther, hbackup.KindUnavailable, hbackup.KindThrottled, hbackup.KindTimeout, hbackup.KindNoSpace, hbackup.KindReadOnly, hbackup.KindUnsupported}},
	{exitUsage, "the command line or the configuration is wrong; nothing was done", []hbackup.Kind{hbackup.KindUsage}},
	{exitPartial, "some items failed, the rest is good", []hbackup.Kind{hbackup.KindPartial}},
	{exitNotFound, "there is no such cluster, table, backup or place", []hbackup.Kind{hbackup.KindNotFound}},
	{exitBusy, "somebody else is at work on it", []hbackup.Kind{hbackup.KindBusy}},
	{exitDenied, "credentials are missing, wrong or too weak", []hbackup.Kind{hbackup.KindDenied}},
	{exitOutside, "the wished moment is outside of what the backups cover", []hbackup.Kind{hbackup.KindOutsideWindow}},
	{exitDamaged, "damage was found: something is missing or not what it was", []hbackup.Kind{hbackup.KindCorrupt, hbackup.KindIncomplete}},
	{exitRefused, "a safety rule says no, for example because the table to restore to exists", []hbackup.Kind{hbackup.KindRefused, hbackup.KindExists, hbackup.KindConflict}},
	{exitInterrupted, "interrupted; run the same request again to go on", []hbackup.Kind{hbackup.KindInterrupted}},
}

// codeOf gives the exit code for the outcome of a verb. Several errors of
// different kinds are just a failure.
func codeOf(ctx context.Context, err error) exitCode {
	if err == nil {
		return exitDone
	}
	if wasInterrupted(ctx) {
		return exitInterrupted
	}
	all := flatten(err)
	code := codeOfKind(hbackup.KindOf(all[0]))
	for _, e := range all[1:] {
		if codeOfKind(hbackup.KindOf(e)) != code {
			return exitFailed
		}
	}
	return code
}

func codeOfKind(k hbackup.Kind) exitCode {
	for _, c := range exitCodes {
		for _, kind := range c.kinds {
			if kind == k {
				return c.code
			}
		}
	}
	return exitFailed
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	if len(all) == 0 {
		return []error{err}
	}
	return all
}

// exitCodeTable is the table of the documentation.
func exitCodeTable() string {
	var b strings.Builder
	b.WriteString("| code | meaning | kinds of errors |\n|---|---|---|\n")
	for _, c := range exitCodes {
		var kinds []string
		for _, k := range c.kinds {
			if k != hbackup.KindOther {
				kinds = append(kinds, "`"+string(k)+"`")
			}
		}
		fmt.Fprintf(&b, "| %d | %s | %s |\n", c.code, c.meaning, strings.Join(kinds, ", "))
	}
	return b.String()
}
