// Package jsoniter stands in for the library of that name in our binary. Of
// its callers only structured-merge-diff is linked: Kubernetes' conversions to
// unstructured objects look up fields through it. Its value package has the
// JSON of server-side apply beside that, which a server reads and writes, and
// makes two pools of the library's when the program starts. So 0.3 MB of
// another JSON library were linked for nobody (docs/adr/0016-binary-size.md).
//
// It has what structured-merge-diff names. What would read or write panics
// with missing, and TestStandIns finds that in the binary should it be linked.
package jsoniter

import "io"

const missing = "stand-in of github.com/json-iterator/go: no server-side apply here"

// API would be a configuration.
type API struct{}

// ConfigCompatibleWithStandardLibrary would read and write what encoding/json does.
var ConfigCompatibleWithStandardLibrary API

// IteratorPool would keep iterators.
type IteratorPool struct{}

// BorrowIterator would return an iterator over JSON.
func (IteratorPool) BorrowIterator([]byte) *Iterator { panic(missing) }

// ReturnIterator would take it back.
func (IteratorPool) ReturnIterator(*Iterator) { panic(missing) }

// Iterator would read JSON.
type Iterator struct{ Error error }

// NewIterator returns what has a pool, and nothing else.
func NewIterator(API) *Iterator { return nil }

// Parse would return an iterator over a stream.
func Parse(API, io.Reader, int) *Iterator { panic(missing) }

// Pool returns an empty pool.
func (*Iterator) Pool() IteratorPool { return IteratorPool{} }

// Read would return the next value.
func (*Iterator) Read() any { panic(missing) }

// ReadMapCB would call with each key.
func (*Iterator) ReadMapCB(func(*Iterator, string) bool) bool { panic(missing) }

// ReadObjectCB would call with each field.
func (*Iterator) ReadObjectCB(func(*Iterator, string) bool) bool { panic(missing) }

// ReportError would note an error.
func (*Iterator) ReportError(string, string) { panic(missing) }

// Skip would skip the next value.
func (*Iterator) Skip() { panic(missing) }

// WhatIsNext would return the kind of the next value.
func (*Iterator) WhatIsNext() int { panic(missing) }

// StreamPool would keep streams.
type StreamPool struct{}

// BorrowStream would return a stream that writes JSON.
func (StreamPool) BorrowStream(io.Writer) *Stream { panic(missing) }

// ReturnStream would take it back.
func (StreamPool) ReturnStream(*Stream) { panic(missing) }

// Stream would write JSON.
type Stream struct{}

// NewStream returns what has a pool, and nothing else.
func NewStream(API, io.Writer, int) *Stream { return nil }

// Pool returns an empty pool.
func (*Stream) Pool() StreamPool { return StreamPool{} }

// Buffer would return what is not written yet.
func (*Stream) Buffer() []byte { panic(missing) }

// Flush would write it.
func (*Stream) Flush() error { panic(missing) }

// SetBuffer would replace it.
func (*Stream) SetBuffer([]byte) { panic(missing) }

// Write would write bytes.
func (*Stream) Write([]byte) (int, error) { panic(missing) }

// WriteEmptyObject would write {}.
func (*Stream) WriteEmptyObject() { panic(missing) }

// WriteInt would write a number.
func (*Stream) WriteInt(int) { panic(missing) }

// WriteMore would write a comma.
func (*Stream) WriteMore() { panic(missing) }

// WriteObjectEnd would write a brace.
func (*Stream) WriteObjectEnd() { panic(missing) }

// WriteObjectField would write a name and a colon.
func (*Stream) WriteObjectField(string) { panic(missing) }

// WriteObjectStart would write a brace.
func (*Stream) WriteObjectStart() { panic(missing) }

// WriteRaw would write text.
func (*Stream) WriteRaw(string) { panic(missing) }

// WriteVal would write a value.
func (*Stream) WriteVal(any) { panic(missing) }
