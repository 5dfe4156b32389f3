/** The filters of runs, for looking and for canceling alike; all that are given have to hold. */
import type { Command } from 'commander'
import {
  type BasicOptions,
  type BasicWords,
  basicFlags,
  type CallerOptions,
  callerFlags,
  commonFilters,
  type PlaceOptions,
  placeFlags,
} from '../remote/filters.js'
import { given } from '../remote/values.js'

/** Which runs are meant, as a person says it. */
export interface RunFilterOptions extends BasicOptions, CallerOptions, PlaceOptions {}

/** The flags for it. */
export const runFilterFlags = (command: Command, words: BasicWords): Command =>
  callerFlags(placeFlags(basicFlags(command, words)), 'triggered')

/** The same in the words of the API. */
export const runFilters = (options: RunFilterOptions) => {
  const { url, host, path } = options
  return { ...given({ workflowUrl: url, host, path }), ...commonFilters(options) }
}
