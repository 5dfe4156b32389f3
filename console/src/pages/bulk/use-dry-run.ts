import { type UseQueryResult, useQuery } from '@tanstack/react-query'
import type { Static } from 'typebox'
import { startBulkAction } from '../../../../src/contract/bulk/actions.js'
import type { BulkPreview } from '../../../../src/contract/bulk/answers.js'
import { api } from '../../api/client.js'
import { keyOf } from '../../api/hooks.js'
import { type Choice, kindOf, selectorOf } from './selector.js'

type Answer = Static<typeof BulkPreview>

/** One of the items that a choice selects. */
export interface SampleItem {
  /** The ID of its run or message. */
  readonly id: string
  /** The page that shows it. */
  readonly page: '/runs/$id' | '/messages/$id'
  /** Its destination. */
  readonly about: string
}

/** What a choice selects right now. */
export interface DryRun {
  readonly matched: number
  /** Items that could not be tested, and so did not match. */
  readonly unreadable: number
  /** The first of them. */
  readonly sample: readonly SampleItem[]
}

/** A dry run: reads what a choice selects. */
export function useDryRun(choice: Choice): UseQueryResult<DryRun, Error> {
  const body = { kind: kindOf(choice), selector: selectorOf(choice), dryRun: true }
  return useQuery({
    queryKey: keyOf(startBulkAction, { body }),
    // Never from the cache: the user is about to act on this count, and nothing refreshes it.
    staleTime: 0,
    queryFn: async ({ signal }): Promise<DryRun> => {
      const answer = await api(startBulkAction, { body }, signal)
      const { matched, unreadable = 0 } = answer
      return { matched, unreadable, sample: isDryRun(answer) ? answer.preview.flatMap(itemOf) : [] }
    },
  })
}

/** Narrows the response: with `dryRun`, the operation returns matches instead of an action. */
function isDryRun(answer: object): answer is Answer {
  return 'preview' in answer && Array.isArray(answer.preview)
}

function itemOf({ workflowRunId, messageId, url }: Answer['preview'][number]): SampleItem[] {
  if (workflowRunId !== undefined) return [{ id: workflowRunId, page: '/runs/$id', about: url }]
  return messageId === undefined ? [] : [{ id: messageId, page: '/messages/$id', about: url }]
}
