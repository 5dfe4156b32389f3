import type { Static } from 'typebox'
import type { BulkLook } from '../../contract/bulk/actions.js'
import type { Store } from '../../store/index.js'
import type { BulkKindName } from '../../store/schema/bulk.js'
import * as bulkPreview from '../transactions/bulk-preview.js'
import { KINDS } from '../worker/kinds.js'
import type { FixedSet } from './fixed-set.js'

/** What is answered to somebody who only looks at what an action would be about. */
export type Look = Static<typeof BulkLook>

type PreviewRow = bulkPreview.PreviewRow

/** How many items a set has that something can be done to, and what the first of them are. */
export async function lookAt(store: Store, kind: BulkKindName, { matched, first }: FixedSet): Promise<Look> {
  const { of } = KINDS[kind]
  const rows = await store.run(bulkPreview.preview, { of, seqs: first })
  return { matched, sample: rows.map(({ id }) => id), preview: rows.map((row) => previewOf(of, row)) }
}

function previewOf(of: 'runs' | 'messages', row: PreviewRow): Look['preview'][number] {
  const labels = row.labels.split('|').filter((label) => label !== '')
  return {
    ...(of === 'runs' ? { workflowRunId: row.id } : { messageId: row.id }),
    ...(row.dlq_id !== null && { dlqId: row.dlq_id }),
    url: row.url,
    ...(labels.length > 0 && { labels }),
    createdAt: row.created_at,
  }
}
