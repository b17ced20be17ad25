package format

import "sync"

// SpareRows are rows that nobody uses anymore, whose maps become new rows of CSV: the maps of a batch take more time to make, and to
// be collected as garbage, than what is in them. Its zero value is ready for use, by several goroutines.
type SpareRows struct {
	mu   sync.Mutex
	rows []map[string]any
	used bool // by a source of CSV; others make their rows themselves
}

// Put adds rows, unless the source makes its rows itself: they would be held until its end. The caller, and whoever else has had them, must not use them
// afterwards.
func (s *SpareRows) Put(rows []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.used {
		return
	}
	for _, row := range rows {
		if row, isMap := row.(map[string]any); isMap {
			clear(row)
			s.rows = append(s.rows, row)
		}
	}
}

// emptyRow returns an empty row for so many columns.
func (s *SpareRows) emptyRow(columns int) map[string]any {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used = true
		if last := len(s.rows) - 1; last >= 0 {
			row := s.rows[last]
			s.rows = s.rows[:last]
			return row
		}
	}
	return make(map[string]any, columns)
}
