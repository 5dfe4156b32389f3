import { join } from 'node:path'
import { MATCHING } from './bulk-data.js'

/** The maximum number of ids per request; more are sent in several requests, one after the other. */
const IDS_A_REQUEST = 100_000

const { prefix, label, from, to } = MATCHING
const requestsOfIds = (count: number): number => Math.ceil(count / IDS_A_REQUEST)

/** Ways to select all matching runs, each with the bodies of its requests. */
export const SELECTORS = {
  'by ids': (ids: readonly string[]): object[] =>
    Array.from({ length: requestsOfIds(ids.length) }, (_, part) => ({
      workflowRunIds: ids.slice(part * IDS_A_REQUEST, (part + 1) * IDS_A_REQUEST),
    })),
  'by URL prefix': (): object[] => [{ workflowUrl: prefix }],
  'by label and dates': (): object[] => [{ label, fromDate: from, toDate: to }],
} as const satisfies Readonly<Record<string, (ids: readonly string[]) => object[]>>

/** A way to select. */
export type SelectorName = keyof typeof SELECTORS

/** The files with the requests of a selector, in order. */
export function requestsOf(directory: string, name: SelectorName, runs: number): string[] {
  const requests = name === 'by ids' ? requestsOfIds(runs) : 1
  return Array.from({ length: requests }, (_, part) => join(directory, `${name} ${part}.json`))
}
