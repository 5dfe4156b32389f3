import IconCopy from 'icon:copy'
import { Button, Menu } from '@mantine/core'
import { useTask } from '../api/hooks.js'
import { copyText } from '../lib/clipboard.js'

/** A menu that copies one of several texts. The texts are made when the user chooses one. */
export function CopyMenu({
  titles,
  of,
  done,
}: {
  titles: readonly string[]
  /** Makes the texts. Called only on a choice, because they may be long. */
  of: () => readonly { readonly title: string; readonly code: string }[]
  /** The notification after a text was copied. */
  done: string
}) {
  const { mutate } = useTask((title: string) => copyText(of().find((one) => one.title === title)?.code ?? ''), { done })
  return (
    <Menu position="bottom-end" withArrow>
      <Menu.Target>
        <Button variant="default" leftSection={<IconCopy size={16} />}>
          Copy as…
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {titles.map((title) => (
          <Menu.Item key={title} onClick={() => mutate(title)}>
            {title}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}
