import { carryOut } from '../bulk/action.js'
import { requireSelection } from '../queue/filters.js'
import { remote } from '../remote/remote.js'
import { type DeadOptions, deadFilters, deadFlags, deadLetterOf } from './dead.js'

/** `homeport runs retry-callbacks`. */
export const retryCallbacksCommand = remote<DeadOptions & { all?: boolean }, [string[]]>({
  name: 'retry-callbacks',
  summary: 'call failure functions again that have failed for good',
  args: [['[ids...]', 'failed runs or their dead letters; else those that the filters select']],
  flags: (command) => deadFlags(command).option('--all', 'of every failed run'),
  examples: ['homeport runs retry-callbacks wfr_…', 'homeport runs retry-callbacks --label billing --from 1d'],
  run: async (session, options, ids) => {
    const filters = deadFilters(options)
    requireSelection('failed runs', ids, filters, options.all)
    const dlqIds = await Promise.all(ids.map((id) => deadLetterOf(session.api, id)))
    await carryOut(session, { kind: 'retryFailureCallbacks', selector: ids.length > 0 ? { dlqIds } : filters })
  },
})
