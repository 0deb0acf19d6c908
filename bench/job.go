package bench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// job is the work that every protocol is given: files of random bytes, dealt out
// to tasks in turn.
type job struct {
	Options
	block []byte // what all files have in common behind their number
}

func newJob(o Options) *job {
	j := &job{Options: o, block: make([]byte, o.Size)}
	random := rand.New(rand.NewPCG(3, 5))
	for i := range j.block {
		j.block[i] = byte(random.Uint32())
	}
	return j
}

// filesOf gives the numbers of the files that a task writes.
func (j *job) filesOf(task int) []int {
	var files []int
	for i := task; i < j.Files; i += j.Tasks {
		files = append(files, i)
	}
	return files
}

func (j *job) tasks() []int {
	all := make([]int, j.Tasks)
	for i := range all {
		all[i] = i
	}
	return all
}

// name is Hadoop's for the file of a number.
func (j *job) name(i int) string { return fmt.Sprintf("part-%05d", i) }

// data gives the bytes of a file.
func (j *job) data(i int) []byte {
	b := bytes.Clone(j.block)
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(i))
	copy(b, number[:])
	return b
}

// poolOf gives the size of a protocol's pool.
func (j *job) poolOf(n int) int {
	if j.Pool > 0 {
		return j.Pool
	}
	return n
}
