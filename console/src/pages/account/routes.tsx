import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../app/root.js'

const team = createRoute({
  getParentRoute: () => shellRoute,
  path: '/team',
  component: lazyRouteComponent(() => import('./teams.js'), 'TeamsPage'),
})

const apiKeys = createRoute({
  getParentRoute: () => shellRoute,
  path: '/api-keys',
  component: lazyRouteComponent(() => import('./api-keys.js'), 'ApiKeysPage'),
})

const audit = createRoute({
  getParentRoute: () => shellRoute,
  path: '/audit',
  component: lazyRouteComponent(() => import('./audit.js'), 'AuditPage'),
})

const usage = createRoute({
  getParentRoute: () => shellRoute,
  path: '/usage',
  component: lazyRouteComponent(() => import('./usage.js'), 'UsagePage'),
})

const alerts = createRoute({
  getParentRoute: () => shellRoute,
  path: '/alerts',
  component: lazyRouteComponent(() => import('./alerts/alerts.js'), 'AlertsPage'),
})

const queueTokens = createRoute({
  getParentRoute: () => shellRoute,
  path: '/queue-tokens',
  component: lazyRouteComponent(() => import('./queue-tokens.js'), 'QueueTokensPage'),
})

const accounts = createRoute({
  getParentRoute: () => shellRoute,
  path: '/accounts',
  component: lazyRouteComponent(() => import('./accounts.js'), 'AccountsPage'),
})

const nodes = createRoute({
  getParentRoute: () => shellRoute,
  path: '/nodes',
  component: lazyRouteComponent(() => import('./nodes.js'), 'NodesPage'),
})

/** Usage, alerts, team, API keys, queue tokens, audit log, and the accounts and nodes of the server. */
export const accountRoutes = [usage, alerts, team, apiKeys, queueTokens, audit, accounts, nodes] as const
