import IconBook2 from 'icon:book-2'
import IconKeyboard from 'icon:keyboard'
import IconLogout from 'icon:logout'
import IconMoon from 'icon:moon'
import IconSearch from 'icon:search'
import IconSun from 'icon:sun'
import IconUser from 'icon:user'
import {
  ActionIcon,
  Anchor,
  AppShell,
  Badge,
  Box,
  Burger,
  Group,
  Menu,
  NavLink,
  ScrollArea,
  Text,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
  VisuallyHidden,
} from '@mantine/core'
import { useDisclosure, useHotkeys } from '@mantine/hooks'
import { CatchBoundary, Link, Outlet, useLocation } from '@tanstack/react-router'
import { Suspense, useEffect, useRef, useState } from 'react'
import { listTeams } from '../../../src/contract/accounts/accounts.js'
import { endConsoleSession } from '../../../src/contract/console/session.js'
import { showError, useApi, useChange } from '../api/hooks.js'
import { useCanWrite, useSession, useSettings } from '../api/session.js'
import { LIVE_REGION } from '../components/announce.js'
import { Loading } from '../components/states.js'
import { ExactTimes } from '../components/when.js'
import { Brand } from './brand.js'
import { EarlyKeys } from './early-keys.js'
import { CodeNotLoaded, lazyPage } from './lazy-page.js'
import { itemOf, NAVIGATION, type NavigationItem } from './navigation.js'
import classes from './shell.module.css'
import { showShortcuts, useCharacters } from './shortcuts.js'
import { StaleWarning } from './stale-warning.js'

const Palette = lazyPage(() => import('./palette.js'), 'Palette')

/** Header, navigation and the page between them. */
export function Shell() {
  // The code of the palette is loaded when it is opened for the first time.
  const [paletteAsked, setPaletteAsked] = useState(0)
  const [early] = useState(() => new EarlyKeys())
  const askForPalette = () => {
    early.start()
    setPaletteAsked((times) => times + 1)
  }
  // The shortcut also works in text fields, because it types no character.
  useHotkeys([['mod+K', askForPalette]], [])
  useEffect(() => {
    // Loads the palette when Ctrl or Cmd is pressed, before K follows.
    const prepare = ({ key }: KeyboardEvent) => {
      if (key === 'Control' || key === 'Meta') void Palette.preload()
    }
    window.addEventListener('keydown', prepare)
    return () => window.removeEventListener('keydown', prepare)
  }, [])
  const [isOpen, { toggle, close }] = useDisclosure()
  const { pathname } = useLocation()
  const operator = useSession().operator === true
  const isShown = ({ isForOperator }: NavigationItem): boolean => operator || isForOperator !== true
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page closes the navigation of small screens.
  useEffect(close, [pathname])
  useCharacters({
    '?': showShortcuts,
    '/': () => document.querySelector<HTMLElement>('[data-search]')?.focus(),
  })
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 216, breakpoint: 'md', collapsed: { mobile: !isOpen } }}
      padding={{ base: 'sm', sm: 'lg' }}
      classNames={{ header: classes.header, navbar: classes.navbar, main: classes.main }}
    >
      <a className="skip-link" href="#content">
        Skip to content
      </a>
      <VisuallyHidden id={LIVE_REGION} role="status" />
      <AppShell.Header>
        <Group h="100%" px={{ base: 'sm', xs: 'md' }} justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="md" size="sm" aria-label="Navigation" />
            <Anchor component={Link} to="/" underline="never" c="inherit" aria-label="Homeport home page">
              <Brand />
            </Anchor>
          </Group>
          <HeaderTools onSearch={askForPalette} />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar aria-label="Main">
        <AppShell.Section grow component={ScrollArea} type="hover" px="xs" py="sm">
          {NAVIGATION.map(({ title, items }) => (
            <Box key={title ?? 'first'} mb="md" {...(title !== undefined && { role: 'group', 'aria-label': title })}>
              {title === undefined ? null : <Text className={classes.sectionTitle}>{title}</Text>}
              {items.filter(isShown).map((item) => (
                <NavigationLine key={item.to} item={item} pathname={pathname} />
              ))}
            </Box>
          ))}
        </AppShell.Section>
        <AppShell.Section px="md" py="xs" className={classes.footer}>
          <Version />
        </AppShell.Section>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <Box className={classes.page}>
          <Suspense fallback={<Loading />}>
            <Outlet />
          </Suspense>
        </Box>
      </AppShell.Main>
      <StaleWarning />
      <ExactTimes />
      <CatchBoundary
        getResetKey={() => paletteAsked}
        errorComponent={() => null}
        onCatch={(error) => {
          early.take()
          showNotLoaded(error)
        }}
      >
        <Suspense fallback={null}>{paletteAsked > 0 ? <Palette asked={paletteAsked} early={early} /> : null}</Suspense>
      </CatchBoundary>
    </AppShell>
  )
}

/** Shows that the palette could not be loaded. The page still works, and the next attempt loads the palette again. */
function showNotLoaded(error: unknown): void {
  showError(error instanceof Error ? error : new Error(String(error)))
  if (error instanceof CodeNotLoaded) void error.retry()
}

function NavigationLine({ item, pathname }: { item: NavigationItem; pathname: string }) {
  const isHere = item === itemOf(pathname)
  const line = useRef<HTMLAnchorElement>(null)
  useEffect(() => {
    // The navigation may be longer than a low window.
    if (isHere) line.current?.scrollIntoView({ block: 'nearest' })
  }, [isHere])
  return (
    <NavLink
      ref={line}
      component={Link}
      to={item.to}
      // The router would also mark this entry active on every page below it.
      activeOptions={{ exact: true }}
      label={item.label}
      leftSection={<item.icon size={18} stroke={1.6} />}
      active={isHere}
      aria-current={isHere ? 'page' : undefined}
      className={classes.line ?? ''}
    />
  )
}

function Version() {
  const { version } = useSettings()
  return (
    <Text size="xs" c="dimmed">
      Homeport {version}
    </Text>
  )
}

function HeaderTools({ onSearch }: { onSearch: () => void }) {
  const canWrite = useCanWrite()
  const { setColorScheme } = useMantineColorScheme()
  const isDark = useComputedColorScheme('light') === 'dark'
  const change = isDark ? 'Switch to the light theme' : 'Switch to the dark theme'
  return (
    <Group gap={4} wrap="nowrap">
      {canWrite ? null : (
        <Badge color="gray" visibleFrom="xs">
          read only
        </Badge>
      )}
      <Tooltip label="Search the console (Ctrl K)">
        <ActionIcon size="lg" aria-label="Search the console" aria-keyshortcuts="Control+K Meta+K" onClick={onSearch}>
          <IconSearch size={18} stroke={1.6} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label="API documentation">
        <ActionIcon
          component="a"
          href="/docs"
          target="_blank"
          rel="noreferrer"
          size="lg"
          aria-label="API documentation"
        >
          <IconBook2 size={18} stroke={1.6} />
        </ActionIcon>
      </Tooltip>
      <Tooltip label={change}>
        <ActionIcon size="lg" aria-label={change} onClick={() => setColorScheme(isDark ? 'light' : 'dark')}>
          {isDark ? <IconSun size={18} stroke={1.6} /> : <IconMoon size={18} stroke={1.6} />}
        </ActionIcon>
      </Tooltip>
      <AccountMenu />
    </Group>
  )
}

/** Signs out without leaving data, such as the history of commands, for the next user of this tab. */
function leave(): void {
  sessionStorage.clear()
  window.location.assign('/sign-in')
}

/** The role and rights of the signed-in user. `isAsked`: the menu with them was opened. */
function Rights({ isAsked }: { isAsked: boolean }) {
  const { role, access } = useSession()
  // A key of a team sees only that team.
  const { data: [team] = [] } = useApi(listTeams, {}, { enabled: isAsked && role !== undefined })
  return (
    <Text size="xs">
      {role === undefined ? 'your own account' : `${role} of ${team ? `the team ${team.team_name}` : 'a team'}`}
      {access === 'read' ? ', read only' : ''}
    </Text>
  )
}

function AccountMenu() {
  const session = useSession()
  const signOut = useChange(endConsoleSession, { onDone: leave })
  const button = useRef<HTMLButtonElement>(null)
  const showKeys = () => {
    // When the dialog closes, it returns the focus to the element that has it now. That must not be the menu, which closes.
    button.current?.focus()
    showShortcuts()
  }
  const [isOpen, { open, close }] = useDisclosure()
  return (
    <Menu position="bottom-end" width={250} withArrow opened={isOpen} onOpen={open} onClose={close}>
      <Menu.Target>
        <ActionIcon ref={button} size="lg" radius="xl" aria-label="Account" color="harbour" variant="light">
          <IconUser size={18} stroke={1.6} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          <Text size="sm" fw={600} c="var(--mantine-color-text)">
            {session.email}
          </Text>
          <Rights isAsked={isOpen} />
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item leftSection={<IconKeyboard size={16} />} onClick={showKeys}>
          Keyboard shortcuts
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => signOut.mutate({})}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
