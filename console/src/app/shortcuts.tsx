import { Group, Kbd, Stack, Text } from '@mantine/core'
import { useWindowEvent } from '@mantine/hooks'
import { modals } from '@mantine/modals'

const SHORTCUTS = [
  { keys: 'Ctrl K', does: 'Go to a page, a database or an identifier; on a Mac ⌘ K' },
  { keys: '/', does: 'Focus the search field of the page' },
  { keys: '?', does: 'Show this list' },
  { keys: 'Enter', does: 'Open the row, link or menu that has the focus' },
  { keys: '↑ ↓', does: 'Move in a menu, a list of choices or the search results' },
  { keys: 'Esc', does: 'Close a dialog or a menu' },
  { keys: 'Tab', does: 'Focus the next control; the first one skips to the content' },
] as const

/** Opens the list of keyboard shortcuts. */
export function showShortcuts(): void {
  modals.open({
    title: 'Keyboard shortcuts',
    children: (
      <Stack gap="xs">
        {SHORTCUTS.map(({ keys, does }) => (
          <Group key={keys} gap="md" wrap="nowrap">
            <Kbd w={64} ta="center" style={{ flex: 'none' }}>
              {keys}
            </Kbd>
            <Text size="sm">{does}</Text>
          </Group>
        ))}
      </Stack>
    ),
  })
}

const isTypedInto = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest('input, textarea, select, [contenteditable="true"]') !== null

const isInDialog = (): boolean => document.querySelector('[aria-modal="true"]') !== null

/** Matches characters, not keys: "/" is a key of its own on some keyboards and Shift+7 on others. */
export function useCharacters(actions: Readonly<Record<string, () => void>>): void {
  useWindowEvent('keydown', (event) => {
    const act = actions[event.key]
    if (act === undefined || event.ctrlKey || event.metaKey || isTypedInto(event.target) || isInDialog()) return
    event.preventDefault()
    act()
  })
}
