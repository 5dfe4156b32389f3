import type { UseQueryResult } from '@tanstack/react-query'
import { useQuery } from '@tanstack/react-query'
import { startBulkAction } from '../../../../src/contract/bulk.js'
import { api } from '../../api/client.js'
import { keyOf } from '../../api/hooks.js'
import { type Choice, selectorOf } from './selector.js'

/** What a choice would select right now. */
export interface Look {
  readonly matched: number
  /** The first of the ids. */
  readonly sample: readonly string[]
}

/** Asks what a choice selects, without doing anything. */
export function useLook(choice: Choice): UseQueryResult<Look, Error> {
  const body = { kind: choice.kind ?? 'cancelRuns', selector: selectorOf(choice), dryRun: true }
  return useQuery({
    queryKey: keyOf(startBulkAction, { body }),
    queryFn: async ({ signal }): Promise<Look> => {
      const answer = await api(startBulkAction, { body }, signal)
      return { matched: answer.matched, sample: sampleOf(answer) }
    },
  })
}

/** The answer to a look has a sample besides; the answer to a start has none. */
function sampleOf(answer: object): string[] {
  const sample = 'sample' in answer && Array.isArray(answer.sample) ? answer.sample : []
  return sample.filter((id): id is string => typeof id === 'string')
}
