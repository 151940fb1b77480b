// Package plan has the words that the engine, its callers and its output share: what a plan, a
// step, a difference, an event and an error of a run are. It is data with a few questions about it,
// and imports nothing of this module.
package plan
