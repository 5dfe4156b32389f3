import { Group, Tabs } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { Suspense } from 'react'
import { type DatabaseRecord, getDatabase } from '../../../../src/contract/databases/databases.js'
import { stateOfDatabase } from '../../../../src/contract/words/states.js'
import { LIVE_MS, useApi } from '../../api/hooks.js'
import { lazyPage } from '../../app/lazy-page.js'
import { ButtonLink } from '../../components/link.js'
import { Page } from '../../components/page.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, isMissing, Loaded, Loading } from '../../components/states.js'
import { BackupsTab } from './backups.js'
import { OverviewTab } from './overview.js'
import { SettingsTab } from './settings.js'
import { DATABASE_TABS, type DatabaseTab } from './tabs.js'
import { UsersTab } from './users/users.js'

const route = getRouteApi('/shell/databases/$id')
// Charts and the data browser are large, so they load when their tab is opened.
const UsageTab = lazyPage(() => import('./usage.js'), 'UsageTab')
const DataTab = lazyPage(() => import('./data/data.js'), 'DataTab')

const TITLES: Readonly<Record<DatabaseTab, string>> = {
  overview: 'Overview',
  usage: 'Usage',
  data: 'Data',
  users: 'Users',
  backups: 'Backups',
  settings: 'Settings',
}

/** The page of one database, with its tabs. */
export function DatabasePage() {
  const { id } = route.useParams()
  const { tab = 'overview' } = route.useSearch()
  const navigate = useNavigate()
  const database = useApi(getDatabase, { params: { id } }, { everyMs: LIVE_MS })
  const show = (next: string | null) =>
    void navigate({ to: '/databases/$id', params: { id }, search: { tab: next as DatabaseTab } })
  return (
    <Page
      title={database.data?.database_name ?? 'Database'}
      crumbs={[{ label: 'Databases', to: '/databases' }]}
      badge={database.data && !isMissing(database.error) ? <State database={database.data} /> : undefined}
    >
      <Loaded query={database} missing={<Missing />}>
        {(record) => (
          <Tabs value={tab} onChange={show} keepMounted={false}>
            <Tabs.List mb="lg">
              {DATABASE_TABS.map((name) => (
                <Tabs.Tab key={name} value={name}>
                  {TITLES[name]}
                </Tabs.Tab>
              ))}
            </Tabs.List>
            <Suspense fallback={<Loading />}>
              <Tabs.Panel value="overview">
                <OverviewTab database={record} />
              </Tabs.Panel>
              <Tabs.Panel value="usage">
                <UsageTab database={record} />
              </Tabs.Panel>
              <Tabs.Panel value="data">
                <DataTab database={record} />
              </Tabs.Panel>
              <Tabs.Panel value="users">
                <UsersTab database={record} />
              </Tabs.Panel>
              <Tabs.Panel value="backups">
                <BackupsTab database={record} />
              </Tabs.Panel>
              <Tabs.Panel value="settings">
                <SettingsTab database={record} />
              </Tabs.Panel>
            </Suspense>
          </Tabs>
        )}
      </Loaded>
    </Page>
  )
}

function Missing() {
  const all = (
    <ButtonLink to="/databases" variant="default">
      All databases
    </ButtonLink>
  )
  return (
    <EmptyState title="Database not found" action={all}>
      It was deleted, or it belongs to another account or team.
    </EmptyState>
  )
}

function State({ database }: { database: DatabaseRecord }) {
  return (
    <Group gap="xs">
      <StateOf word={stateOfDatabase(database)} />
    </Group>
  )
}
