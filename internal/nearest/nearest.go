// Package nearest finds the word that somebody probably meant.
package nearest

import "strings"

// To gives the candidate that is closest to word, or "" when none is close
// enough to be worth naming. Case and the difference between '-' and '_' cost
// nothing. Of equally close candidates the first wins.
func To(word string, candidates []string) string {
	best, bestDistance := "", min((len(word)+1)/3, 3)
	folded := fold(word)
	for _, c := range candidates {
		d := distance(folded, fold(c))
		if d > 0 && len(folded) >= 3 && strings.HasPrefix(fold(c), folded) {
			d = 1 // a word broken off early: "loc" for "locations"
		}
		if d > 0 && len(c) >= 4 && strings.HasPrefix(folded, fold(c)) {
			d = 1 // a longer form of the word: "warning" for "warn"
		}
		if d <= bestDistance && (best == "" || d < bestDistance) {
			best, bestDistance = c, d
		}
	}
	return best
}

func fold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// distance is the number of single-character insertions, deletions,
// replacements and swaps of neighbours between a and b.
func distance(a, b string) int {
	const longest = 64 // longer words are no typing errors, and the work is quadratic
	if len(a) > longest || len(b) > longest {
		if a == b {
			return 0
		}
		return longest
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
