import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.js'
import { shellRoute } from '../../app/root.js'
import { given, textAt } from '../../lib/search.js'

/** Whose keys are listed. */
interface KeysSearch {
  /** The id of a team; absent: the account, or the team of the session. */
  readonly team?: string
  /** If set, the dialog for a new key of this member is open. */
  readonly member?: string
}

const team = createRoute({
  getParentRoute: () => shellRoute,
  path: '/team',
  component: lazyPage(() => import('./teams.js'), 'TeamsPage'),
})

const apiKeys = createRoute({
  getParentRoute: () => shellRoute,
  path: '/api-keys',
  component: lazyPage(() => import('./api-keys.js'), 'ApiKeysPage'),
  validateSearch: (search: Record<string, unknown>): KeysSearch =>
    given({ team: textAt(search, 'team'), member: textAt(search, 'member') }),
})

const audit = createRoute({
  getParentRoute: () => shellRoute,
  path: '/audit',
  component: lazyPage(() => import('./audit.js'), 'AuditPage'),
  validateSearch: (search: Record<string, unknown>): { search?: string } => given({ search: textAt(search, 'search') }),
})

const usage = createRoute({
  getParentRoute: () => shellRoute,
  path: '/usage',
  component: lazyPage(() => import('./usage.js'), 'UsagePage'),
})

const alerts = createRoute({
  getParentRoute: () => shellRoute,
  path: '/alerts',
  component: lazyPage(() => import('./alerts/alerts.js'), 'AlertsPage'),
})

const queueTokens = createRoute({
  getParentRoute: () => shellRoute,
  path: '/queue-tokens',
  component: lazyPage(() => import('./queue-tokens.js'), 'QueueTokensPage'),
})

const accounts = createRoute({
  getParentRoute: () => shellRoute,
  path: '/accounts',
  component: lazyPage(() => import('./accounts.js'), 'AccountsPage'),
})

const nodes = createRoute({
  getParentRoute: () => shellRoute,
  path: '/nodes',
  component: lazyPage(() => import('./nodes.js'), 'NodesPage'),
})

/** Usage, alerts, team, API keys, queue tokens, audit log, and the accounts and nodes of the server. */
export const accountRoutes = [usage, alerts, team, apiKeys, queueTokens, audit, accounts, nodes] as const
