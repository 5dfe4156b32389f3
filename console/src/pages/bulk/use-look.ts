import type { UseQueryResult } from '@tanstack/react-query'
import { useQuery } from '@tanstack/react-query'
import { startBulkAction } from '../../../../src/contract/bulk.js'
import { listLogs } from '../../../../src/contract/queue.js'
import { listDeadLetters } from '../../../../src/contract/queue-dead-letters.js'
import { listDeadRuns } from '../../../../src/contract/workflow-dead-letters.js'
import { api } from '../../api/client.js'
import { keyOf } from '../../api/hooks.js'
import { messagesOf, standingOf } from '../queue/story.js'
import { FAMILY_OF } from './families.js'
import { type Choice, kindOf, selectorOf } from './selector.js'

/** One of the items that a choice selects. */
export interface SampleItem {
  /** Of its run or message. */
  readonly id: string
  /** The page that shows it. */
  readonly page: '/runs/$id' | '/messages/$id'
  /** Where it goes. */
  readonly about: string
}

/** What a choice would select right now. */
export interface Look {
  readonly matched: number
  /** Some of them. */
  readonly sample: readonly SampleItem[]
}

/** Asks what a choice selects, without doing anything. */
export function useLook(choice: Choice): UseQueryResult<Look, Error> {
  const body = { kind: kindOf(choice), selector: selectorOf(choice), dryRun: true }
  return useQuery({
    queryKey: keyOf(startBulkAction, { body }),
    queryFn: async ({ signal }): Promise<Look> => {
      const answer = await api(startBulkAction, { body }, signal)
      const sample = answer.matched === 0 ? [] : await sampleOf(choice, answer, signal)
      return { matched: answer.matched, sample: sample.slice(0, answer.matched) }
    },
  })
}

const MOST = 20

/** The answer to a look has ids of runs; of all else the lists tell what the same selector finds. */
async function sampleOf(choice: Choice, answer: object, signal: AbortSignal): Promise<SampleItem[]> {
  const selector = selectorOf(choice)
  const query = { ...selector, count: MOST }
  switch (FAMILY_OF[kindOf(choice)]) {
    case 'runs':
      return idsIn(answer).map((id) => ({ id, page: '/runs/$id', about: '' }))
    case 'deadRuns': {
      const { messages } = await api(listDeadRuns, { query }, signal)
      return messages.map((run) => ({ id: run.workflowRunId, page: '/runs/$id', about: run.workflowUrl }))
    }
    case 'deadLetters': {
      const { messages } = await api(listDeadLetters, { query }, signal)
      return messages.map(({ messageId, url }) => ({ id: messageId, page: '/messages/$id', about: url }))
    }
    case 'messages':
      return unfinishedOf(selector, signal)
  }
}

function idsIn(answer: object): string[] {
  const sample = 'sample' in answer && Array.isArray(answer.sample) ? answer.sample : []
  return sample.filter((id): id is string => typeof id === 'string')
}

/** A message has several entries in the log, and those that have ended are there too. */
const ENTRIES = 500

/** The newest messages that have not ended: they are listed by their log only. */
async function unfinishedOf(selector: object, signal: AbortSignal): Promise<SampleItem[]> {
  const { logs } = await api(listLogs, { query: { ...selector, count: ENTRIES, trimBody: 0 } }, signal)
  const unfinished = messagesOf(logs).filter(({ latest }) => standingOf(latest.state) === 'unfinished')
  return unfinished
    .slice(0, MOST)
    .map(({ messageId, latest }) => ({ id: messageId, page: '/messages/$id', about: latest.url }))
}
