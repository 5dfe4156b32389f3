/** The entries of the navigation. A new top-level page gets an entry here. */
import IconAdjustments from 'icon:adjustments'
import IconBell from 'icon:bell'
import IconBellRinging from 'icon:bell-ringing'
import IconBuilding from 'icon:building'
import IconCalendarTime from 'icon:calendar-time'
import IconDatabase from 'icon:database'
import IconHistory from 'icon:history'
import IconHome from 'icon:home'
import IconKey from 'icon:key'
import IconList from 'icon:list'
import IconListCheck from 'icon:list-check'
import IconMailX from 'icon:mail-x'
import IconMessages from 'icon:messages'
import IconReportMoney from 'icon:report-money'
import IconRoute from 'icon:route'
import IconRouteX from 'icon:route-x'
import IconServer from 'icon:server-2'
import IconSignature from 'icon:signature'
import IconTopologyStar3 from 'icon:topology-star-3'
import IconUsers from 'icon:users'
import type { LinkProps } from '@tanstack/react-router'
import type { ComponentType } from 'react'

/** An entry of the navigation. */
export interface NavigationItem {
  readonly label: string
  readonly to: NonNullable<LinkProps['to']>
  readonly icon: ComponentType<{ size?: number | string; stroke?: number }>
  /** Only the operator of the server sees it. */
  readonly isForOperator?: true
}

/** A section of the navigation. */
export interface NavigationSection {
  /** Absent for the first section. */
  readonly title?: string
  readonly items: readonly NavigationItem[]
}

/** The navigation from top to bottom. */
export const NAVIGATION: readonly NavigationSection[] = [
  {
    items: [
      { label: 'Home', to: '/', icon: IconHome },
      { label: 'Databases', to: '/databases', icon: IconDatabase },
    ],
  },
  {
    title: 'Queue',
    items: [
      { label: 'Messages', to: '/messages', icon: IconMessages },
      { label: 'Dead letters', to: '/dead-letters', icon: IconMailX },
      { label: 'Queues', to: '/queues', icon: IconList },
      { label: 'Schedules', to: '/schedules', icon: IconCalendarTime },
      { label: 'URL groups', to: '/url-groups', icon: IconTopologyStar3 },
      { label: 'Flow control', to: '/flow-control', icon: IconAdjustments },
      { label: 'Signing keys', to: '/signing-keys', icon: IconSignature },
    ],
  },
  {
    title: 'Workflows',
    items: [
      { label: 'Runs', to: '/runs', icon: IconRoute },
      { label: 'Failed runs', to: '/runs/dead-letters', icon: IconRouteX },
      { label: 'Events', to: '/events', icon: IconBell },
      { label: 'Bulk actions', to: '/bulk-actions', icon: IconListCheck },
    ],
  },
  {
    title: 'Account',
    items: [
      { label: 'Usage and cost', to: '/usage', icon: IconReportMoney },
      { label: 'Alerts', to: '/alerts', icon: IconBellRinging },
      { label: 'Team', to: '/team', icon: IconUsers },
      { label: 'API keys', to: '/api-keys', icon: IconKey },
      { label: 'Queue tokens', to: '/queue-tokens', icon: IconKey },
      { label: 'Audit log', to: '/audit', icon: IconHistory },
      { label: 'Accounts', to: '/accounts', icon: IconBuilding, isForOperator: true },
      { label: 'Nodes', to: '/nodes', icon: IconServer, isForOperator: true },
    ],
  },
]

const covers = ({ to }: NavigationItem, path: string): boolean =>
  to === path || (to !== '/' && path.startsWith(`${to}/`))

/** The entry that a page belongs to: the longest path that the address begins with. */
export function itemOf(path: string): NavigationItem | undefined {
  const items = NAVIGATION.flatMap((section) => section.items).filter((item) => covers(item, path))
  return items.sort((one, other) => other.to.length - one.to.length)[0]
}
