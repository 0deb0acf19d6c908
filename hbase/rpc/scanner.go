package rpc

import (
	"bytes"
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// regionScanner reads one region through one scanner of its server.
type regionScanner struct {
	c    *Client
	at   location
	spec *hbpb.Scan
	rows uint32 // per call

	id      uint64
	opened  bool
	row     Row // begun, more of it may come
	size    int // bytes of row
	stopped bool
}

// read gives every whole row of the region to emit. An error may leave a row
// half read: it is not given out, and is read again by the next scanner.
func (s *regionScanner) read(ctx context.Context, emit func(Row) bool) error {
	// The first call opens the scanner and may bring rows already. The next
	// calls are counted from 0: a call that is sent twice is noticed.
	req := &hbpb.ScanRequest{
		Region:                  byName(s.at.region),
		Scan:                    s.spec,
		NumberOfRows:            &s.rows,
		ClientHandlesPartials:   proto.Bool(true),
		ClientHandlesHeartbeats: proto.Bool(true),
	}
	for seq := uint64(0); ; seq++ {
		resp := &hbpb.ScanResponse{}
		block, err := s.c.callServer(ctx, s.at.server, ClientService, "Scan", req, resp, nil, callOptions{})
		if err != nil {
			if ctx.Err() != nil {
				s.close(ctx)
			}
			return err
		}
		if resp.ScannerId != nil {
			s.id, s.opened = resp.GetScannerId(), true
		}
		// A heartbeat may come with results; without any it only says "alive".
		if err := s.take(resp, block, emit); err != nil {
			s.close(ctx)
			return err
		}
		if s.stopped {
			s.close(ctx)
			return nil
		}
		if resp.MoreResultsInRegion != nil && !resp.GetMoreResultsInRegion() || resp.MoreResults != nil && !resp.GetMoreResults() {
			s.flush(emit) // the server has closed the scanner
			return nil
		}
		if !s.opened {
			return corruptf("scan answer without a scanner id")
		}
		req = &hbpb.ScanRequest{
			ScannerId:               &s.id,
			NumberOfRows:            &s.rows,
			NextCallSeq:             &seq,
			ClientHandlesPartials:   proto.Bool(true),
			ClientHandlesHeartbeats: proto.Bool(true),
		}
	}
}

// take adds the results of one answer to the row that is begun, and gives out
// the rows that are whole.
func (s *regionScanner) take(resp *hbpb.ScanResponse, block []byte, emit func(Row) bool) error {
	results := len(resp.CellsPerResult)
	inMessage := results == 0
	if inMessage {
		results = len(resp.Results)
	}
	for i := range results {
		var cells []Cell
		var err error
		if inMessage {
			cells, block, err = resultCells(resp.Results[i], block)
		} else {
			cells, block, err = takeCells(block, int(resp.CellsPerResult[i]))
		}
		if err != nil {
			return err
		}
		partial := i < len(resp.PartialFlagPerResult) && resp.PartialFlagPerResult[i]
		if len(cells) == 0 {
			continue
		}
		if !bytes.Equal(s.row.Key, cells[0].Row) && !s.flush(emit) {
			return nil
		}
		s.row.Key = cells[0].Row
		for _, c := range cells {
			if !bytes.Equal(c.Row, s.row.Key) {
				return corruptf("a result with cells of two rows")
			}
			s.size += len(c.Row) + len(c.Family) + len(c.Qualifier) + len(c.Value) + len(c.Tags)
		}
		if s.size > s.c.cfg.MaxFrame {
			return hbackup.Errorf("", "", hbackup.KindUnsupported, "row %.100q has more than %d bytes", s.row.Key, s.c.cfg.MaxFrame)
		}
		s.row.Cells = append(s.row.Cells, cells...)
		if !partial && !s.flush(emit) {
			return nil
		}
	}
	if len(block) > 0 {
		return corruptf("%d bytes behind the last cell of an answer", len(block))
	}
	return nil
}

// flush gives out the row that is begun. It reports whether to go on.
func (s *regionScanner) flush(emit func(Row) bool) bool {
	if len(s.row.Cells) > 0 && !s.stopped {
		row := s.row
		s.row, s.size = Row{}, 0
		s.stopped = !emit(row)
	}
	return !s.stopped
}

// close frees the scanner on the server, which otherwise does so a minute
// later; therefore an error does not matter.
func (s *regionScanner) close(ctx context.Context) {
	if !s.opened {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	req := &hbpb.ScanRequest{ScannerId: &s.id, CloseScanner: proto.Bool(true)}
	if _, err := s.c.callServer(ctx, s.at.server, ClientService, "Scan", req, &hbpb.ScanResponse{}, nil, callOptions{}); err != nil {
		s.c.cfg.Log.Debug("scanner not closed", "error", err)
	}
}
