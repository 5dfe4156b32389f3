import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.js'
import { shellRoute } from '../../app/root.js'
import { type WizardSearch, wizardSearchAt } from './selector.js'
import { OUTCOME_WORDS, type OutcomeName } from './words.js'

const list = createRoute({
  getParentRoute: () => shellRoute,
  path: '/bulk-actions',
  component: lazyPage(() => import('./list.js'), 'BulkActionsPage'),
})

const wizard = createRoute({
  getParentRoute: () => shellRoute,
  path: '/bulk-actions/new',
  component: lazyPage(() => import('./wizard.js'), 'WizardPage'),
  validateSearch: (search: Record<string, unknown>): WizardSearch => wizardSearchAt(search),
})

/** The outcome filter of the list. */
export interface OutcomeSearch {
  readonly outcome?: OutcomeName
}

const action = createRoute({
  getParentRoute: () => shellRoute,
  path: '/bulk-actions/$id',
  component: lazyPage(() => import('./action.js'), 'BulkActionPage'),
  validateSearch: (search: Record<string, unknown>): OutcomeSearch => {
    const outcome = (Object.keys(OUTCOME_WORDS) as OutcomeName[]).find((known) => known === search.outcome)
    return outcome === undefined ? {} : { outcome }
  },
})

/** The list of bulk actions, the wizard, and the page of one action. */
export const bulkRoutes = [list, wizard, action] as const
