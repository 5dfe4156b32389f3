import { createRoute } from '@tanstack/react-router'
import { lazyPage } from '../../app/lazy-page.js'
import { shellRoute } from '../../app/root.js'
import { given, textAt } from '../../lib/search.js'
import { type DeadSearch, deadSearchOf, type MessageSearch, messageSearchOf } from './search.js'

const messages = createRoute({
  getParentRoute: () => shellRoute,
  path: '/messages',
  component: lazyPage(() => import('./messages.js'), 'MessagesPage'),
  validateSearch: (search: Record<string, unknown>): MessageSearch => messageSearchOf(search),
})

const message = createRoute({
  getParentRoute: () => shellRoute,
  path: '/messages/$id',
  component: lazyPage(() => import('./message.js'), 'MessagePage'),
})

const queues = createRoute({
  getParentRoute: () => shellRoute,
  path: '/queues',
  component: lazyPage(() => import('./queues.js'), 'QueuesPage'),
})

const schedules = createRoute({
  getParentRoute: () => shellRoute,
  path: '/schedules',
  component: lazyPage(() => import('./schedules.js'), 'SchedulesPage'),
})

const groups = createRoute({
  getParentRoute: () => shellRoute,
  path: '/url-groups',
  component: lazyPage(() => import('./groups.js'), 'UrlGroupsPage'),
})

const flow = createRoute({
  getParentRoute: () => shellRoute,
  path: '/flow-control',
  component: lazyPage(() => import('./flow.js'), 'FlowControlPage'),
  validateSearch: (search: Record<string, unknown>): { search?: string } => given({ search: textAt(search, 'search') }),
})

const dead = createRoute({
  getParentRoute: () => shellRoute,
  path: '/dead-letters',
  component: lazyPage(() => import('./dead-letters.js'), 'DeadLettersPage'),
  validateSearch: (search: Record<string, unknown>): DeadSearch => deadSearchOf(search),
})

const keys = createRoute({
  getParentRoute: () => shellRoute,
  path: '/signing-keys',
  component: lazyPage(() => import('./signing-keys.js'), 'SigningKeysPage'),
})

/** Messages, queues, schedules, URL groups, flow control, dead letters and signing keys. */
export const queueRoutes = [messages, message, queues, schedules, groups, flow, dead, keys] as const
