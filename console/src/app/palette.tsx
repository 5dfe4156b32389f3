import '@mantine/spotlight/styles.css'
import IconArrowRight from 'icon:arrow-right'
import IconDatabase from 'icon:database'
import IconDatabasePlus from 'icon:database-plus'
import IconKeyboard from 'icon:keyboard'
import IconListCheck from 'icon:list-check'
import IconMoon from 'icon:moon'
import IconSearch from 'icon:search'
import { useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { createSpotlight, Spotlight } from '@mantine/spotlight'
import { useNavigate } from '@tanstack/react-router'
import { type ComponentType, useEffect, useRef, useState } from 'react'
import { listDatabaseSummaries } from '../../../src/contract/console/console.js'
import { stateOfDatabase } from '../../../src/contract/words/states.js'
import { useApi } from '../api/hooks.js'
import { useCanWrite, useSession } from '../api/session.js'
import type { EarlyKeys } from './early-keys.js'
import { NAVIGATION } from './navigation.js'
import { isMatch, targetOf } from './palette-items.js'
import { showShortcuts } from './shortcuts.js'

const [store, spotlight] = createSpotlight()
/** Most databases that are listed. */
const MAX_DATABASES = 8
/** Longest text to search for. Further characters are ignored. */
const MAX_SEARCH_LENGTH = 50
const TYPING_MS = 150

/** Something to go to or to do. */
interface Item {
  readonly label: string
  readonly description?: string
  readonly icon: ComponentType<{ size?: number | string; stroke?: number }>
  readonly act: () => void
}

/** Opens whenever `asked` grows. Finds pages, actions and databases by name, and runs, messages and bulk actions by identifier. */
export function Palette({ asked, early }: { asked: number; early: EarlyKeys }) {
  const [text, setText] = useState('')
  useEffect(() => {
    if (asked === 0) return
    // An open palette has the focus already, so keys need no buffer.
    if (store.getState().opened) early.take()
    else spotlight.open()
  }, [asked, early])
  const groups = [
    { label: 'Identifier', items: useIdentified(text) },
    { label: 'Databases', items: useDatabases(text) },
    { label: 'Pages', items: usePages().filter(({ label }) => isMatch(label, text)) },
    { label: 'Actions', items: useActions().filter(({ label }) => isMatch(label, text)) },
    { label: 'Search', items: useSearches(text) },
  ].filter(({ items }) => items.length > 0)
  const list = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // The library selects the first result when the text changes. Results that arrive later may be placed above it.
    const selected = list.current?.querySelector('[data-selected]')
    if (text === '' || (selected && store.getState().selected > 0)) return
    selected?.removeAttribute('data-selected')
    list.current?.querySelector('[data-action]')?.setAttribute('data-selected', 'true')
    store.updateState((state) => ({ ...state, selected: 0 }))
  })
  return (
    <Spotlight.Root
      store={store}
      query={text}
      onQueryChange={setText}
      shortcut={null}
      scrollable
      maxHeight={420}
      attributes={{ content: { 'aria-label': 'Search the console' } }}
      // No blur, as for other dialogs: it is slow to paint without a graphics processor.
      overlayProps={{}}
      // The library's 0.7 is too pale on the selected line.
      styles={{ actionDescription: { opacity: 0.85 } }}
    >
      <Spotlight.Search
        placeholder="Go to a page, a database or an identifier"
        aria-label="Search the console"
        onFocus={() => {
          const typed = early.take()
          setText((now) => now + typed)
        }}
      />
      <Spotlight.ActionsList ref={list}>
        {groups.map(({ label, items }) => (
          <Spotlight.ActionsGroup key={label} label={label}>
            {items.map((item) => (
              <Spotlight.Action
                key={item.label + (item.description ?? '')}
                label={item.label}
                description={item.description}
                leftSection={<item.icon size={18} stroke={1.6} />}
                onClick={item.act}
              />
            ))}
          </Spotlight.ActionsGroup>
        ))}
      </Spotlight.ActionsList>
    </Spotlight.Root>
  )
}

function useIdentified(text: string): Item[] {
  const navigate = useNavigate()
  const target = targetOf(text)
  if (!target) return []
  const { label, to, params } = target
  return [{ label, icon: IconArrowRight, act: () => void navigate({ to, params }) }]
}

function useDatabases(text: string): Item[] {
  const navigate = useNavigate()
  const [search] = useDebouncedValue(text.trim().slice(0, MAX_SEARCH_LENGTH), TYPING_MS)
  const { data } = useApi(
    listDatabaseSummaries,
    { query: { search, count: MAX_DATABASES } },
    { enabled: search !== '' && targetOf(search) === undefined },
  )
  if (text.trim() === '' || !data) return []
  return data.databases.map(({ database_id: id, database_name: label, primary_region, ...of }) => ({
    label,
    description: `${primary_region}, ${stateOfDatabase(of).word}`,
    icon: IconDatabase,
    act: () => void navigate({ to: '/databases/$id', params: { id } }),
  }))
}

/** Links to the lists, filtered by a text that is not an identifier. */
function useSearches(text: string): Item[] {
  const navigate = useNavigate()
  const search = text.trim().slice(0, MAX_SEARCH_LENGTH)
  if (search === '' || targetOf(search)) return []
  return [
    { label: `Runs with “${search}”`, icon: IconSearch, act: () => void navigate({ to: '/runs', search: { search } }) },
    {
      label: `Messages with “${search}”`,
      icon: IconSearch,
      act: () => void navigate({ to: '/messages', search: { search } }),
    },
    {
      label: `Runs that wait for the event “${search}”`,
      icon: IconSearch,
      act: () => void navigate({ to: '/events', search: { event: search } }),
    },
    {
      label: `Changes with “${search}”`,
      description: 'audit log',
      icon: IconSearch,
      act: () => void navigate({ to: '/audit', search: { search } }),
    },
  ]
}

function usePages(): Item[] {
  const navigate = useNavigate()
  const isOperator = useSession().operator === true
  return NAVIGATION.flatMap(({ items }) => items)
    .filter(({ isForOperator }) => isOperator || isForOperator !== true)
    .map(({ label, icon, to }) => ({ label, icon, act: () => void navigate({ to }) }))
}

function useActions(): Item[] {
  const navigate = useNavigate()
  const canWrite = useCanWrite()
  const { setColorScheme } = useMantineColorScheme()
  const other = useComputedColorScheme('light') === 'dark' ? 'light' : 'dark'
  const changes: Item[] = [
    {
      label: 'Create a database',
      icon: IconDatabasePlus,
      act: () => void navigate({ to: '/databases', search: { create: true } }),
    },
    {
      label: 'Start a bulk action',
      icon: IconListCheck,
      act: () => void navigate({ to: '/bulk-actions/new' }),
    },
  ]
  return [
    ...(canWrite ? changes : []),
    { label: `Switch to the ${other} theme`, icon: IconMoon, act: () => setColorScheme(other) },
    { label: 'Show the keyboard shortcuts', icon: IconKeyboard, act: showShortcuts },
  ]
}
