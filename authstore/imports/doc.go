// Package imports takes over the credentials that another program left on disk (spec/imports.md).
//
//	source ──read once──► Document ──► authstore.Import ──► read back ──► receipt ──► archive
//	   │                     │         (one transaction)
//	   └ damaged: left alone └ entries that cannot be used: named by id and reason
//
// Sources are strangers' bytes: any field may be missing, of another type, or hostile. What our
// store already holds always wins, and no report ever shows a value.
package imports
