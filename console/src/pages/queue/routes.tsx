import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../app/root.js'
import { type DeadSearch, deadSearchOf, type MessageSearch, messageSearchOf } from './search.js'

const messages = createRoute({
  getParentRoute: () => shellRoute,
  path: '/messages',
  component: lazyRouteComponent(() => import('./messages.js'), 'MessagesPage'),
  validateSearch: (search: Record<string, unknown>): MessageSearch => messageSearchOf(search),
})

const message = createRoute({
  getParentRoute: () => shellRoute,
  path: '/messages/$id',
  component: lazyRouteComponent(() => import('./message.js'), 'MessagePage'),
})

const queues = createRoute({
  getParentRoute: () => shellRoute,
  path: '/queues',
  component: lazyRouteComponent(() => import('./queues.js'), 'QueuesPage'),
})

const schedules = createRoute({
  getParentRoute: () => shellRoute,
  path: '/schedules',
  component: lazyRouteComponent(() => import('./schedules.js'), 'SchedulesPage'),
})

const groups = createRoute({
  getParentRoute: () => shellRoute,
  path: '/url-groups',
  component: lazyRouteComponent(() => import('./groups.js'), 'UrlGroupsPage'),
})

const flow = createRoute({
  getParentRoute: () => shellRoute,
  path: '/flow-control',
  component: lazyRouteComponent(() => import('./flow.js'), 'FlowControlPage'),
})

const dead = createRoute({
  getParentRoute: () => shellRoute,
  path: '/dead-letters',
  component: lazyRouteComponent(() => import('./dead-letters.js'), 'DeadLettersPage'),
  validateSearch: (search: Record<string, unknown>): DeadSearch => deadSearchOf(search),
})

const keys = createRoute({
  getParentRoute: () => shellRoute,
  path: '/signing-keys',
  component: lazyRouteComponent(() => import('./signing-keys.js'), 'SigningKeysPage'),
})

/** Messages, queues, schedules, URL groups, flow control, dead letters and signing keys. */
export const queueRoutes = [messages, message, queues, schedules, groups, flow, dead, keys] as const
