import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.js'
import { shellRoute } from '../../app/root.js'
import {
  type DeadRunSearch,
  deadRunSearchOf,
  type EventSearch,
  eventSearchOf,
  type RunSearch,
  runSearchOf,
} from './search.js'

const runs = createRoute({
  getParentRoute: () => shellRoute,
  path: '/runs',
  component: lazyPage(() => import('./runs.js'), 'RunsPage'),
  validateSearch: (search: Record<string, unknown>): RunSearch => runSearchOf(search),
})

const run = createRoute({
  getParentRoute: () => shellRoute,
  path: '/runs/$id',
  component: lazyPage(() => import('./run.js'), 'RunPage'),
})

const dead = createRoute({
  getParentRoute: () => shellRoute,
  path: '/runs/dead-letters',
  component: lazyPage(() => import('./dead-runs.js'), 'DeadRunsPage'),
  validateSearch: (search: Record<string, unknown>): DeadRunSearch => deadRunSearchOf(search),
})

const events = createRoute({
  getParentRoute: () => shellRoute,
  path: '/events',
  component: lazyPage(() => import('./events.js'), 'EventsPage'),
  validateSearch: (search: Record<string, unknown>): EventSearch => eventSearchOf(search),
})

/** Runs, one run, failed runs, and events. */
export const workflowRoutes = [runs, run, dead, events] as const
