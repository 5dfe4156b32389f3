import type { Command } from 'commander'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Api } from '../remote/api.js'
import { type BasicOptions, basicFlags, commonFilters } from '../remote/filters.js'
import { given } from '../remote/values.js'
import { findRun } from './find.js'

/** How commands choose among failed runs. */

/** What failed runs are filtered by. */
export type DeadOptions = BasicOptions

/** The flags by which failed runs are chosen. */
export const deadFlags = (command: Command): Command =>
  basicFlags(command, { url: 'of exactly this URL', from: 'failed at or after', to: 'failed at or before' })

/** The same in the words of the API. */
export const deadFilters = ({ url, label, from, to }: DeadOptions) => ({
  ...given({ workflowUrl: url }),
  ...commonFilters(given({ label, from, to })),
})

/** People know runs; the API wants their dead letters. */
export async function deadLetterOf(api: Api, id: string): Promise<string> {
  if (/^\d+-\d+$/.test(id)) return id
  const { dlqId, workflowState } = await findRun(api, id)
  if (dlqId !== undefined) return dlqId
  const problem = `The run "${id}" has no dead letter: it is ${workflowState}, or was taken up again already.`
  throw new HomeportError('cli_not_found', { problem })
}
