//! What pictures must show: labels against the layouts themselves, renderings as well-formed text, snapshots to
//! look at, and refusals.

mod xml;

use super::{BankAccess, Banks, Cell, Colour, Paint, Picture, gallery};
use crate::linear::{Dim, LinearLayout, MatrixMove, MatrixShape, Operand, SwizzleWidth, WmmaGeneration};
use crate::linear::{Major, mma_sync, wgmma_accumulator, wgmma_shared_operand, wmma};
use crate::{
    Element, ErrorKind, Fill, Layout, Movement, Swizzle, SwizzledLayout, Threads, View, ViewProgram,
};
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;
use xml::elements;

fn cell(picture: &Picture, panel: usize, row: i64, column: i64) -> &Cell {
    picture.panels()[panel].cell(row as usize, column as usize).unwrap()
}

fn label(picture: &Picture, panel: usize, row: i64, column: i64) -> String {
    cell(picture, panel, row, column).labels().join("|")
}

fn cell_count(picture: &Picture) -> usize {
    picture.panels().iter().map(|panel| panel.rows().len() * panel.columns().len()).sum()
}

#[test]
fn a_layout_is_drawn_as_it_answers() {
    for text in ["8:3", "(4,8):(8,1)", "((2,2),(2,4)):((1,4),(2,8))", "(3,2,(2,3)):(-1,12,(3,24))", "():()"] {
        let layout: Layout = text.parse().unwrap();
        let picture = Picture::layout(&layout).unwrap();
        assert_eq!(cell_count(&picture), layout.size() as usize);
        let sizes: Vec<i64> = layout.modes().map(|mode| mode.size()).collect();
        for (index, offset) in (0..).zip(layout.offsets()) {
            let (panel, row, column) = match sizes.as_slice() {
                [] => (0, 0, 0),
                [_] => (0, 0, index),
                [rows, columns, ..] => (index / rows / columns, index % rows, index / rows % columns),
            };
            assert_eq!(label(&picture, panel as usize, row, column), offset.to_string(), "{text} at {index}");
        }
    }
}

#[test]
fn headers_are_the_coordinates_that_the_layout_takes() {
    let layout: Layout = "((2,3),(4,(1,2))):((1,40),(2,(0,9)))".parse().unwrap();
    let picture = Picture::layout(&layout).unwrap();
    let panel = &picture.panels()[0];
    for (row, row_name) in panel.rows().enumerate() {
        for (column, column_name) in panel.columns().enumerate() {
            let coordinate = format!("({row_name},{column_name})").parse().unwrap();
            let offset = layout.offset(&coordinate).unwrap();
            assert_eq!(panel.cell(row, column).unwrap().labels(), [offset.to_string()]);
        }
    }
}

#[test]
fn equal_colours_are_equal_offsets_modulo_eight() {
    let picture = Picture::swizzled(&"Sw<3,0,3> o 0 o (8,8):(8,1)".parse().unwrap()).unwrap();
    for column in 0..8 {
        let mut paints: Vec<String> =
            (0..8).map(|row| format!("{:?}", cell(&picture, 0, row, column).paint())).collect();
        paints.sort();
        paints.dedup();
        assert_eq!(paints.len(), 8, "every row of column {column} lies in another column of memory");
        assert_eq!(label(&picture, 0, 5, column), (40 + (column ^ 5)).to_string());
    }
}

#[test]
fn a_view_of_three_axes_has_its_last_two_in_each_panel() {
    let view =
        View::row_major(&[2, 3, 4]).unwrap().pad_with(&[None, Some((1, 0)), None], Fill::from(9)).unwrap();
    let picture = Picture::view(&view).unwrap();
    assert_eq!(
        picture.panels().iter().map(|panel| panel.title()).collect::<Vec<_>>(),
        ["[0, ..]", "[1, ..]"]
    );
    for panel in 0..2 {
        for row in 0..4 {
            for column in 0..4 {
                let offset = view.get(&[panel, row, column]).unwrap();
                let cell = cell(&picture, panel as usize, row, column);
                assert_eq!(cell.labels(), [offset.unwrap_or(9).to_string()]);
                assert_eq!(cell.paint() == Paint::Hatched, offset.is_none());
            }
        }
    }
}

#[test]
fn a_program_names_its_sources_where_there_are_several() {
    let parts = [0, 4].map(|source| ViewProgram::row_major(source, &[2, 3]).unwrap());
    let program = ViewProgram::cat(&parts, 0).unwrap().pad(&[None, Some((0, 1))]).unwrap();
    let picture = Picture::program(&program).unwrap();
    for row in 0..4 {
        for column in 0..4 {
            let expected = match program.get(&[row, column]).unwrap() {
                Element::Memory { source, offset } => format!("{source}:{offset}"),
                Element::Fill(value) => value.to_string(),
            };
            assert_eq!(label(&picture, 0, row, column), expected);
        }
    }
    assert_eq!(cell(&picture, 0, 0, 0).paint(), cell(&picture, 0, 1, 2).paint());
    assert_ne!(cell(&picture, 0, 0, 0).paint(), cell(&picture, 0, 2, 0).paint());
}

#[test]
fn fragments_are_held_as_their_layouts_say() {
    let shape = MatrixShape { m: 16, n: 8, k: 16 };
    let fragments = [
        mma_sync(shape, 16, Operand::B).unwrap(),
        wgmma_accumulator(8).unwrap(),
        wmma(WmmaGeneration::Gfx11, 16, Operand::B).unwrap(),
    ];
    for layout in fragments {
        let picture = Picture::threads(&layout).unwrap();
        let mut entered = 0;
        for warp in 0..1u64 << layout.input_bits(Dim::Warp) {
            for lane in 0..1u64 << layout.input_bits(Dim::Lane) {
                for register in 0..1u64 << layout.input_bits(Dim::Register) {
                    let mut holder = vec![(Dim::Lane, lane), (Dim::Register, register)];
                    let mut name = format!("T{lane} V{register}");
                    if layout.input_bits(Dim::Warp) > 0 {
                        holder.push((Dim::Warp, warp));
                        name = format!("W{warp} {name}");
                    }
                    let at = layout.apply(&holder).unwrap();
                    let labels = cell(&picture, 0, at[0].1 as i64, at[1].1 as i64).labels();
                    assert!(labels.contains(&name), "{name} is not among {labels:?}");
                    entered += 1;
                }
            }
        }
        let shown: usize = picture.panels()[0].cells.iter().map(|cell| cell.labels().len()).sum();
        assert_eq!(shown, entered);
    }
}

#[test]
fn further_axes_of_a_fragment_are_panels() {
    let load = MatrixMove { matrices: 4, transposed: true }.fragment().unwrap();
    let picture = Picture::threads(&load).unwrap();
    let titles: Vec<&str> = picture.panels().iter().map(|panel| panel.title()).collect();
    assert_eq!(titles, ["axis2=0", "axis2=1", "axis2=2", "axis2=3"]);
    let at = load.apply(&[(Dim::Register, 5), (Dim::Lane, 11)]).unwrap();
    assert_eq!(label(&picture, at[2].1 as usize, at[0].1 as i64, at[1].1 as i64), "T11 V5");
}

#[test]
fn many_holders_are_counted_and_gaps_are_blank() {
    let all = LinearLayout::zeros(Dim::Lane, Dim::Axis(0), 32).unwrap();
    let picture = Picture::threads(&all).unwrap();
    assert_eq!(cell(&picture, 0, 0, 0).labels(), ["T0", "T1", "T2", "T3", "+28"]);
    let even = LinearLayout::new(&[(Dim::Lane, &[[2]])], [(Dim::Axis(0), 4)]).unwrap();
    let picture = Picture::threads(&even).unwrap();
    assert_eq!(cell(&picture, 0, 0, 1).paint(), Paint::Blank);
    assert_eq!(label(&picture, 0, 0, 2), "T1");
}

#[test]
fn thread_value_layouts_agree_with_linear_ones() {
    // The accumulator of m16n8, once as CuTe writes it and once from its bits.
    let cute: Layout = "((4,8),(2,2)):((32,1),(16,8))".parse().unwrap();
    let by_modes = Picture::thread_value(&cute, 16, 8).unwrap();
    let shape = MatrixShape { m: 16, n: 8, k: 16 };
    let by_bits = Picture::threads(&mma_sync(shape, 16, Operand::Accumulator).unwrap()).unwrap();
    assert_eq!(by_modes.panels(), by_bits.panels());
}

#[test]
fn distributed_tensors_are_owned_as_distribute_says() {
    let threads = Threads::new(Layout::row_major([4, 2]).unwrap());
    let picture = Picture::distributed(&[6, 5], &threads).unwrap();
    let tensor = View::row_major(&[6, 5]).unwrap();
    for thread in 0..8 {
        for (value, position) in tensor.distribute(&threads, thread).unwrap().offsets().enumerate() {
            let Some(position) = position else { continue };
            assert_eq!(label(&picture, 0, position / 5, position % 5), format!("T{thread} V{value}"));
        }
    }
}

#[test]
fn banks_follow_addresses() {
    let rows = Layout::row_major([8, 40]).unwrap();
    let picture = Picture::banks(&rows, &Banks::new(2)).unwrap();
    for row in 0..8 {
        for column in 0..40 {
            let bank = rows.offset(&(row, column).into()).unwrap() * 2 / 4 % 32;
            assert_eq!(label(&picture, 0, row, column), bank.to_string());
        }
    }
    let doubles = Picture::banks(&rows, &Banks::new(8)).unwrap();
    assert_eq!(label(&doubles, 0, 0, 15), "30–31");
    assert_eq!(label(&doubles, 0, 0, 16), "0–1");
}

#[test]
fn an_access_is_outlined_and_counted() {
    let lanes = (0..8).map(|row| (row, 8)).collect();
    let banks = Banks::new(2).columns_per_cell(4).accessed(BankAccess { lanes, width: 16 });
    let rows = Layout::row_major([8, 64]).unwrap();
    let swizzle = Swizzle::new(3, 3, 3).unwrap();
    let swizzled = SwizzledLayout::new(swizzle, 0, rows.clone()).unwrap();
    let operand = wgmma_shared_operand(Major::K, SwizzleWidth::Bytes128, 16, 8, 64).unwrap();
    let plain = Picture::banks(&rows, &banks).unwrap();
    let conflict_free = Picture::banks(&swizzled, &banks).unwrap();
    let passes = |picture: &Picture| picture.legend().last().map(String::from).unwrap();
    assert!(passes(&plain).contains("wavefronts: 8, without conflicts 1"), "{}", passes(&plain));
    assert!(passes(&conflict_free).contains("wavefronts: 1, without conflicts 1"));
    // 128-byte rows of `wgmma` are this swizzle.
    assert_eq!(Picture::banks(&operand.layout, &banks).unwrap().panels(), conflict_free.panels());
    for row in 0..8 {
        for column in 0..16 {
            let touched = matches!(column, 2 | 3);
            let cell = cell(&plain, 0, row, column);
            assert_eq!((cell.is_outlined(), cell.labels()[0].contains('T')), (touched, touched));
        }
    }
    assert_eq!(label(&plain, 0, 5, 2), "4–5 T5");
}

#[test]
fn svg_is_well_formed_and_has_every_cell() {
    let pictures = gallery().unwrap().into_iter().map(|exhibit| exhibit.picture);
    let more = ["(2,3,4):(1,2,6)", "(0,3):(3,1)", "():()"];
    let more = more.map(|text| Picture::layout(&text.parse().unwrap()).unwrap());
    for picture in pictures.chain(more) {
        let svg = picture.to_svg();
        let counts = elements(&svg);
        assert_eq!((counts["svg"], counts["title"], counts["style"]), (1, 1, 1));
        assert_eq!(svg.matches("<rect class=\"cell\"").count(), cell_count(&picture));
        assert_eq!(svg, picture.clone().to_svg());
        assert!(!svg.contains("script") && !svg.contains("href"));
    }
}

#[test]
fn titles_are_escaped() {
    let picture = Picture::layout(&Layout::unit()).unwrap().with_title("a<b & \"c\" 'd' \u{1b}[31m\u{0}");
    let svg = picture.to_svg();
    elements(&svg);
    assert!(svg.contains("<title>a&lt;b &amp; &quot;c&quot; &apos;d&apos; \u{fffd}[31m\u{fffd}</title>"));
    assert!(!picture.to_terminal(Colour::Off).contains('\u{1b}'));
}

#[test]
fn tables_are_aligned() {
    for exhibit in gallery().unwrap() {
        for colour in [Colour::Off, Colour::Ansi256] {
            let text = exhibit.picture.to_terminal(colour);
            let lines: Vec<String> = text.lines().map(without_escapes).collect();
            let table = lines.iter().filter(|line| line.starts_with(['┌', '│', '├', '└']));
            let widths: Vec<usize> = table.map(|line| line.chars().count()).collect();
            assert!(widths.len() > 4 && widths.iter().all(|width| *width == widths[0]), "{}", exhibit.name);
        }
    }
}

fn without_escapes(line: &str) -> String {
    let parts = line.split('\u{1b}').enumerate();
    parts.map(|(place, part)| if place == 0 { part } else { part.split_once('m').unwrap().1 }).collect()
}

#[test]
fn terminal_snapshots() {
    let exhibits = gallery().unwrap();
    for name in
        ["row-major", "hierarchical", "zipped-divide", "banks-row-major", "mma-m16n8k16-d", "program-joined"]
    {
        let exhibit = exhibits.iter().find(|exhibit| exhibit.name == name).unwrap();
        insta::assert_snapshot!(format!("picture_{name}"), exhibit.picture.to_terminal(Colour::Off));
    }
    let panels = Picture::layout(&"(2,2,(2,1)):(1,2,(4,0))".parse().unwrap()).unwrap();
    insta::assert_snapshot!("picture_panels", panels.to_terminal(Colour::Off));
    let coloured =
        Picture::view(&View::row_major(&[1, 2]).unwrap().pad(&[None, Some((1, 0))]).unwrap()).unwrap();
    insta::assert_snapshot!("picture_ansi", coloured.to_terminal(Colour::Ansi256).replace('\u{1b}', "ESC"));
    insta::assert_snapshot!("picture_svg", coloured.to_svg());
}

#[test]
fn the_gallery_has_distinct_names_that_fit_files() {
    let mut names: Vec<&str> = gallery().unwrap().iter().map(|exhibit| exhibit.name).collect();
    assert!(
        names.iter().all(|name| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'))
    );
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn empty_things_are_small_pictures() {
    let huge = View::row_major(&[0, 1 << 40, 1 << 20]).unwrap();
    let pictures = [
        Picture::layout(&"(0,3):(3,1)".parse().unwrap()),
        Picture::layout(&"(1000000,0):(1,1)".parse().unwrap()),
        Picture::view(&huge),
        Picture::program(&ViewProgram::new(0, huge)),
        Picture::thread_value(&"(0,4):(1,1)".parse().unwrap(), 0, 4),
        Picture::thread_value(&"(0,1000000000000000):(1,1)".parse().unwrap(), 0, 4),
        Picture::distributed(&[0, 4], &Threads::new(Layout::row_major([2, 2]).unwrap())),
        Picture::banks(&Layout::row_major([0, 4]).unwrap(), &Banks::new(2)),
    ];
    for picture in pictures {
        let picture = picture.unwrap();
        assert!(picture.panels().is_empty());
        assert!(picture.to_terminal(Colour::Off).ends_with("no elements\n"));
    }
}

#[test]
fn refusals() {
    let large: Layout = "(128,129):(1,128)".parse().unwrap();
    let wide = LinearLayout::identity(Dim::Lane, Dim::Axis(0), 1 << 40).unwrap();
    let many = LinearLayout::zeros(Dim::Lane, Dim::Axis(0), 1 << 40).unwrap();
    let memory = LinearLayout::identity(Dim::Lane, Dim::Offset, 8).unwrap();
    let rows = Layout::row_major([4, 8]).unwrap();
    let threads = Threads::new(Layout::row_major([1 << 30, 1 << 30]).unwrap());
    let few = Threads::new(Layout::row_major([2, 2]).unwrap());
    let access = |lanes: &[(i64, i64)], width| {
        Picture::banks(&rows, &Banks::new(2).accessed(BankAccess { lanes: lanes.to_vec(), width }))
    };
    let cases = [
        ("wide", Picture::layout(&large)),
        ("deep", Picture::layout(&"(128,128,2):(1,128,0)".parse().unwrap())),
        ("panels", Picture::layout(&"(1,1,129):(1,1,1)".parse().unwrap())),
        ("view", Picture::view(&View::row_major(&[1 << 31, 1 << 31]).unwrap())),
        ("program", Picture::program(&ViewProgram::row_major(0, &[200, 1]).unwrap())),
        ("linear", Picture::threads(&wide)),
        ("holders", Picture::threads(&many)),
        ("offsets", Picture::threads(&memory)),
        ("one mode", Picture::thread_value(&"8:1".parse().unwrap(), 2, 4)),
        ("outside the tile", Picture::thread_value(&"(4,2):(2,1)".parse().unwrap(), 2, 2)),
        ("below the tile", Picture::thread_value(&"(4,2):(-2,1)".parse().unwrap(), 4, 4)),
        ("negative tile", Picture::thread_value(&"(4,2):(2,1)".parse().unwrap(), -2, 4)),
        ("many values", Picture::thread_value(&"(1048576,2):(0,0)".parse().unwrap(), 2, 2)),
        ("many threads", Picture::distributed(&[4, 4], &threads)),
        ("rank of threads", Picture::distributed(&[4], &few)),
        ("large banks", Picture::banks(&large, &Banks::new(2))),
        ("ranks of banks", Picture::banks(&"(2,2,2):(1,2,4)".parse::<Layout>().unwrap(), &Banks::new(2))),
        ("below address 0", Picture::banks(&"(2,2):(1,-2)".parse::<Layout>().unwrap(), &Banks::new(2))),
        (
            "torn cells",
            Picture::banks(&"(2,4):(1,2)".parse::<Layout>().unwrap(), &Banks::new(2).columns_per_cell(2)),
        ),
        ("cells that don't divide", Picture::banks(&rows, &Banks::new(2).columns_per_cell(3))),
        ("no columns", Picture::banks(&rows, &Banks::new(2).columns_per_cell(0))),
        ("no bytes", Picture::banks(&rows, &Banks::new(0))),
        ("no banks", Picture::banks(&rows, &Banks { banks: 0, ..Banks::new(2) })),
        ("linear fragment as a tile", Picture::banks(&many, &Banks::new(2))),
        ("access outside", access(&[(4, 0)], 4)),
        ("access below", access(&[(-1, 0)], 4)),
        ("misaligned access", access(&[(0, 1)], 4)),
        ("width of access", access(&[(0, 0)], 3)),
    ];
    let line = |(name, result): (&str, Result<Picture, _>)| match result {
        Ok(_) => format!("{name}: drawn"),
        Err(error) => format!("{name}: {error:?}"),
    };
    assert_eq!(Picture::layout(&large).unwrap_err().kind(), ErrorKind::Unsupported);
    insta::assert_snapshot!("picture_refusals", cases.into_iter().map(line).collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_largest_picture_is_drawn() {
    let square = Layout::column_major([128, 128]).unwrap();
    let picture = Picture::layout(&square).unwrap();
    assert_eq!(picture.to_svg().matches("class=\"cell\"").count(), 128 * 128);
}
