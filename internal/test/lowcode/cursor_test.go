package lowcode_test

import (
	"maps"
	"time"
)

// streamKey names the state of a part of a stream.
func streamKey(stream component, one part) string { return stream.text("name") + " " + one.key }

// spans are the slices of time of a partition.
func (r *reader) spans(stream, cursor component, one part) (out []part) {
	format := cursor.text("datetime_format")
	start := r.datetime(cursor, "start_datetime", one)
	end := r.now
	if cursor["end_datetime"] != nil {
		end = r.datetime(cursor, "end_datetime", one)
	}
	if at, has := r.state[streamKey(stream, one)]; has {
		if look := r.periodOf(cursor, "lookback_window"); look != nil {
			at = look.addTo(at, -1)
		}
		if at.After(start) {
			start = at
		}
	}
	step, granularity := r.periodOf(cursor, "step"), r.periodOf(cursor, "cursor_granularity")
	for from := start; !from.After(end); {
		upper := end
		if step != nil {
			upper = step.addTo(from, 1)
		}
		to := upper
		if granularity != nil && step != nil {
			to = granularity.addTo(upper, -1)
		}
		if to.After(end) {
			to = end
		}
		span := part{fields: maps.Clone(one.fields), extra: one.extra, key: one.key, from: from, to: to}
		span.fields[fieldOf(cursor, "partition_field_start", "start_time")] = formatTime(from, format)
		span.fields[fieldOf(cursor, "partition_field_end", "end_time")] = formatTime(to, format)
		if out = append(out, span); step == nil {
			break
		}
		from = upper
		if len(out) > 60 {
			panic(unplayable("more than 60 slices"))
		}
	}
	return out
}

func (r *reader) periodOf(cursor component, key string) *period {
	text := textOf(known(interpolate(cursor.text(key), r.in(cursor, nil))))
	if text == "" || text == "None" {
		return nil
	}
	of := parsePeriod(text)
	return &of
}

// datetime is a MinMaxDatetime.
func (r *reader) datetime(cursor component, key string, one part) time.Time {
	of := cursor.of(key)
	if of == nil {
		of = component{"datetime": cursor[key], "$parameters": cursor["$parameters"]}
	}
	format := of.text("datetime_format")
	if format == "" {
		format = cursor.text("datetime_format")
	}
	read := func(key string) (time.Time, bool) {
		text := textOf(of[key])
		if of[key] == nil || text == "" {
			return time.Time{}, false
		}
		value := textOf(interpolate(text, r.in(of, one.names())))
		if at, is := parseTime(value, format); is {
			return at, true
		}
		if at, is := parseTime(value, cursor.text("datetime_format")); is {
			return at, true
		}
		return isoTime(value), true
	}
	at, _ := read("datetime")
	if least, has := read("min_datetime"); has && least.After(at) {
		at = least
	}
	if most, has := read("max_datetime"); has && most.Before(at) {
		at = most
	}
	return at
}

// cursorField is the field of records that says their time.
func (r *reader) cursorField(cursor component) string {
	return textOf(interpolate(cursor.text("cursor_field"), r.in(cursor, nil)))
}

// cursorTime is the time of a record.
func (r *reader) cursorTime(cursor component, record map[string]any) (time.Time, bool) {
	value, has := record[r.cursorField(cursor)]
	if !has || value == nil {
		return time.Time{}, false
	}
	formats := append([]any(nil), listOf(cursor["cursor_datetime_formats"])...)
	for _, format := range append(formats, cursor.text("datetime_format")) {
		if at, is := parseTime(textOf(value), textOf(format)); is {
			return at, true
		}
	}
	return time.Time{}, false
}

// observe notes how far the records of a part reach.
func (r *reader) observe(stream component, one part, records []map[string]any) {
	cursor := stream.of("incremental_sync")
	if cursor == nil {
		return
	}
	key := streamKey(stream, one)
	for _, record := range records {
		if at, has := r.cursorTime(cursor, record); has && at.After(r.reached[key]) {
			r.reached[key], r.texts[key] = at, record[r.cursorField(cursor)]
		}
	}
}

// isOld reports whether a record is left out because the state is behind it.
func (r *reader) isOld(stream component, one part, record map[string]any) bool {
	cursor := stream.of("incremental_sync")
	if cursor["is_client_side_incremental"] != true {
		return false
	}
	at, has := r.cursorTime(cursor, record)
	return has && at.Before(one.from)
}

// feedEnds reports whether the last record of a page of a feed, whose newest come first, is an old one.
func (r *reader) feedEnds(stream component, one part, last any) bool {
	cursor := stream.of("incremental_sync")
	record, is := last.(map[string]any)
	if cursor["is_data_feed"] != true || !is {
		return false
	}
	at, has := r.cursorTime(cursor, record)
	return has && at.Before(one.from)
}

// withState is a part whose templates read the state of the last run too.
func (r *reader) withState(stream component, one part) names {
	out := one.names()
	if at, has := r.state[streamKey(stream, one)]; has && !at.IsZero() {
		field := r.cursorField(stream.of("incremental_sync"))
		out["stream_state"] = map[string]any{field: r.before[streamKey(stream, one)]}
	}
	return out
}
